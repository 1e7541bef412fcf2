package delivery

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

// voice is a Deps.Speak that keeps what it was asked to say.
type voice struct {
	asked []chat.Outbound
	do    func(ctx context.Context) (*chat.Attachment, error)
}

func (v *voice) speak(ctx context.Context, o chat.Outbound) (*chat.Attachment, error) {
	v.asked = append(v.asked, o)
	if v.do != nil {
		return v.do(ctx)
	}
	return &chat.Attachment{Name: "voice.ogg", Voice: true, Data: []byte{1}}, nil
}

func (v *voice) use(d *Deps) { d.Speak = v.speak }

// TestOnlySpeakableClassesAreHeard: whatever way a thing leaves, and whatever it asks for, its class alone
// decides.
func TestOnlySpeakableClassesAreHeard(t *testing.T) {
	v := &voice{}
	bubbleWith(t, Settings{Previews: true, ReplyTo: ModeFirst}, v.use, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t0")
		turn.Stream("a preview")
		w.pass(4 * time.Second)
		aloud := &chat.Speech{Text: "aloud"}
		turn.Notify(chat.Outbound{Markdown: "another model answers", Speech: aloud})
		turn.Notify(chat.Outbound{Class: chat.Progress, Markdown: "still trying", Speech: aloud})
		w.finish(turn, spokenAs("the answer"))
		classes := 0
		for c := chat.Assistant; c.String() != chat.Class(0).String(); c++ {
			classes++
			if err := w.s.Send(w.t.Context(), chat.Outbound{To: home, Class: c, Markdown: "sent as " + c.String(), Speech: aloud}); err != nil {
				t.Fatal(err)
			}
			if turn := w.s.Begin(home, question, "t"+c.String()); c.Durable() {
				w.finish(turn, chat.Outbound{Class: c, Markdown: "finished as " + c.String(), Speech: aloud})
			}
		}
		if classes < 7 {
			t.Fatalf("%d classes", classes)
		}
		w.pass(time.Minute)
		heard := 0
		for _, o := range v.asked {
			heard++
			if !o.Class.Speakable() || o.Markdown == "a preview" {
				t.Errorf("heard %s %q", o.Class, o.Markdown)
			}
		}
		if heard != 7 { // the answer, and the three classes in both ways
			t.Errorf("%d things heard", heard)
		}
		files := 0
		for _, m := range w.f.all() {
			if m.File != "" {
				files++
			}
		}
		if files != heard {
			t.Errorf("%d sounds sent for %d made", files, heard)
		}
	})
}

// TestSpeechFails: without its sound an answer is text, and nothing more is said about it.
func TestSpeechFails(t *testing.T) {
	for _, c := range []struct {
		name    string
		do      func(ctx context.Context) (*chat.Attachment, error)
		prepare func(*platform)
		files   int
	}{
		{"works", nil, nil, 1},
		{"nothing to hear", func(context.Context) (*chat.Attachment, error) { return nil, nil }, nil, 0},
		{"fails", func(context.Context) (*chat.Attachment, error) { return nil, errors.New("no voice") }, nil, 0},
		{"hangs", func(ctx context.Context) (*chat.Attachment, error) { <-ctx.Done(); return nil, context.Cause(ctx) }, nil, 0},
		{"refused by the platform", nil, func(f *platform) { f.onSend = noFiles(refusal(channels.Refused)) }, 0},
		{"too large", nil, func(f *platform) { f.onSend = noFiles(refusal(channels.TooLong)) }, 0},
		{"perhaps sent", nil, func(f *platform) { f.onSend = noFiles(unsure()) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &voice{do: c.do}
			bubbleWith(t, Settings{}, v.use, c.prepare, func(w *world) {
				w.finish(w.s.Begin(home, question, "t1"), answer("Paris."))
				w.pass(time.Hour)
				want := append([]string{"Paris."}, make([]string, c.files)...)
				if d := cmp.Diff(want, w.f.texts()); d != "" {
					t.Error(d)
				}
				if d := cmp.Diff([]string{"sent"}, w.state()); d != "" || len(w.unknown) > 0 {
					t.Error(d, w.unknown)
				}
			})
		})
	}
}

func noFiles(err error) func(channels.Piece) (bool, error) {
	return func(p channels.Piece) (bool, error) {
		if len(p.Media) > 0 {
			return false, err
		}
		return true, nil
	}
}

// TestSpokenAnswerKeepsItsPreview: the preview becomes the text, the sound follows; typing goes on
// until the text is there.
func TestSpokenAnswerKeepsItsPreview(t *testing.T) {
	v := &voice{}
	bubbleWith(t, Settings{Previews: true, Typing: TypingInstant, ReplyTo: ModeFirst}, v.use, nil, func(w *world) {
		v.do = func(context.Context) (*chat.Attachment, error) {
			slowly(20 * time.Second)
			return &chat.Attachment{Name: "voice.ogg"}, nil
		}
		turn := w.s.Begin(home, question, "t1")
		turn.Stream("Par")
		w.pass(4 * time.Second)
		w.finish(turn, answer("Paris."))
		w.pass(10 * time.Second)
		signs := w.f.count("typing")
		w.pass(20 * time.Second)
		diff(t, w.f.all(), []said{
			{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant},
			{File: "voice.ogg", Class: chat.Assistant},
		})
		if w.f.all()[0].ID != "1" || w.f.count("typing") <= signs {
			t.Errorf("calls %q", w.f.calls)
		}
	})
}

// TestFilesAreNotSpoken: an answer with files of its own has no sound.
func TestFilesAreNotSpoken(t *testing.T) {
	v := &voice{}
	bubbleWith(t, Settings{}, v.use, nil, func(w *world) {
		o := answer("Here.")
		o.Media = []chat.Attachment{{Name: "a.png"}}
		w.finish(w.s.Begin(home, question, "t1"), o)
		w.pass(0)
		if len(v.asked) != 0 {
			t.Error("asked for a sound")
		}
	})
}

// TestSpeechOverRestarts: an answer is not spoken twice, and a stop while it is being spoken leaves
// it to the next process.
func TestSpeechOverRestarts(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "copy.sqlite")
	v := &voice{}
	bubbleWith(t, Settings{}, v.use, func(f *platform) { f.traits.Pace = channels.Pace{Every: time.Minute, Burst: 1} }, func(w *world) {
		w.finish(w.s.Begin(home, question, "in-1"), answer("Paris."))
		w.pass(time.Second) // the sound waits for the pace
		w.crash(copied)
		w.restart(copied)
		if n := len(v.asked); n != 1 || len(w.f.all()) != 2 {
			t.Errorf("spoken %d times, said %+v", n, w.f.all())
		}
		v.do = func(ctx context.Context) (*chat.Attachment, error) { <-ctx.Done(); return nil, ctx.Err() }
		w.finish(w.s.Begin(home, question, "in-2"), answer("Rome."))
		w.pass(time.Second)
		w.halt()
		v.do = nil
		w.boot()
		w.pass(time.Hour)
		if got := w.f.all(); len(got) != 4 || got[2].Text != "Rome." || got[3].File == "" {
			t.Errorf("said %+v", got)
		}
	})
}

// TestSilenceOverRestarts: that an answer is not to be heard is settled once.
func TestSilenceOverRestarts(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "copy.sqlite")
	v := &voice{do: func(context.Context) (*chat.Attachment, error) { return nil, nil }}
	bubbleWith(t, Settings{}, v.use, func(f *platform) { f.traits.Pace = channels.Pace{Every: time.Minute, Burst: 1} }, func(w *world) {
		w.say(home, "first")
		w.finish(w.s.Begin(home, question, "in-1"), answer("Paris."))
		w.pass(time.Second) // the answer waits for the pace
		w.crash(copied)
		w.restart(copied)
		if d := cmp.Diff([]string{"first", "Paris."}, w.f.texts()); d != "" || len(v.asked) != 1 {
			t.Errorf("%s asked %d times", d, len(v.asked))
		}
	})
}

// captions makes a platform whose voice notes carry so much text.
func captions(f *platform) { f.traits.VoiceCaption = 40 }

// long is a text that no caption holds.
const long = "An answer of more than forty characters, by far."

// spokenAs is an answer that is said aloud.
func spokenAs(text string) chat.Outbound {
	o := answer(text)
	o.Speech = &chat.Speech{Text: text}
	return o
}

// TestVoiceNoteComesFirst: with the text as its caption where that fits, else before the text; it is the
// first message, so it refers to what it answers. Whatever happens to it, the text arrives, once.
func TestVoiceNoteComesFirst(t *testing.T) {
	voice1 := func(text string) said {
		return said{Text: text, File: "voice.ogg", ReplyTo: "555", Class: chat.Assistant}
	}
	text1 := func(text string) said { return said{Text: text, ReplyTo: "555", Class: chat.Assistant} }
	text2 := func(text string) said { return said{Text: text, Class: chat.Assistant} }
	for _, c := range []struct {
		name, text string
		do         func(ctx context.Context) (*chat.Attachment, error)
		prepare    func(*platform)
		want       []said
		unknown    int
	}{
		{"short", "Paris.", nil, nil, []said{voice1("Paris.")}, 0},
		{"long", long, nil, nil, []said{voice1(""), text2(long)}, 0},
		{"nobody speaks", "Paris.", func(context.Context) (*chat.Attachment, error) { return nil, errors.New("no voice") }, nil, []said{text1("Paris.")}, 0},
		{
			"no voice note", "Paris.",
			func(context.Context) (*chat.Attachment, error) { return &chat.Attachment{Name: "a.wav"}, nil }, nil,
			[]said{text1("Paris."), {File: "a.wav", Class: chat.Assistant}},
			0,
		},
		{"refused", "Paris.", nil, func(f *platform) { f.onSend = noFiles(refusal(channels.Refused)) }, []said{text1("Paris.")}, 0},
		{"refused, and long", long, nil, func(f *platform) { f.onSend = noFiles(refusal(channels.Refused)) }, []said{text1(long)}, 0},
		{"no rights for it", long, nil, func(f *platform) { f.onSend = noFiles(refusal(channels.Gone)) }, []said{text1(long)}, 0},
		{"not taken for a minute", "Paris.", nil, func(f *platform) { f.onSend = noFiles(retryAfter(0)) }, []said{text1("Paris.")}, 0},
		{"not taken for a minute, and long", long, nil, func(f *platform) { f.onSend = noFiles(retryAfter(0)) }, []said{text1(long)}, 0},
		{"a caption that is too long after all", "Paris.", nil, func(f *platform) {
			f.onSend = func(p channels.Piece) (bool, error) {
				if len(p.Media) > 0 && p.Text != "" {
					return false, refusal(channels.TooLong)
				}
				return true, nil
			}
		}, []said{voice1(""), text2("Paris.")}, 0},
		{"perhaps sent", "Paris.", nil, func(f *platform) { f.onSend = noFiles(unsure()) }, nil, 1},
		{"perhaps sent, and long", long, nil, func(f *platform) { f.onSend = noFiles(unsure()) }, []said{text2(long)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &voice{do: c.do}
			prepare := func(f *platform) {
				captions(f)
				if c.prepare != nil {
					c.prepare(f)
				}
			}
			bubbleWith(t, Settings{ReplyTo: ModeFirst}, v.use, prepare, func(w *world) {
				w.finish(w.s.Begin(home, question, "t1"), spokenAs(c.text))
				w.pass(90 * time.Second)
				diff(t, w.f.all(), c.want)
				if len(w.unknown) != c.unknown {
					t.Errorf("%d unknown", len(w.unknown))
				}
			})
		})
	}
}

// TestHeldText: nothing of an answer that is certain to be spoken is seen before its voice note, where
// that comes first; and people see that it is being recorded.
func TestHeldText(t *testing.T) {
	set := Settings{Previews: true, Typing: TypingInstant, ReplyTo: ModeFirst}
	slow := func(context.Context) (*chat.Attachment, error) {
		slowly(6 * time.Second)
		return &chat.Attachment{Name: "voice.ogg", Voice: true}, nil
	}
	for _, c := range []struct {
		name                    string
		hold, captions, preview bool
		want                    []said
		recording               int
	}{
		{"held", true, true, false, []said{{Text: "Paris.", File: "voice.ogg", ReplyTo: "555", Class: chat.Assistant}}, 2},
		{"asked for by the model", false, true, true, []said{{Text: "Paris.", File: "voice.ogg", ReplyTo: "555", Class: chat.Assistant}}, 2},
		{"a channel without voice notes", true, false, true, []said{{Text: "Paris.", ReplyTo: "555", Class: chat.Assistant}, {File: "voice.ogg", Class: chat.Assistant}}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &voice{do: slow}
			prepare := func(f *platform) {
				if c.captions {
					captions(f)
				}
				f.onSend = func(p channels.Piece) (bool, error) {
					if len(p.Media) > 0 {
						slowly(4 * time.Second)
					}
					return true, nil
				}
			}
			bubbleWith(t, set, v.use, prepare, func(w *world) {
				turn := w.s.Begin(home, question, "t1")
				if c.hold {
					turn.Hold()
				}
				turn.Stream("Par")
				w.pass(4 * time.Second)
				before := w.f.all()
				if seen := len(before) > 0; seen != c.preview {
					t.Errorf("seen before: %+v", before)
				}
				w.finish(turn, spokenAs("Paris."))
				if w.pass(8 * time.Second); c.captions {
					diff(t, w.f.all(), before) // something to read until the sound is there
				}
				w.pass(time.Minute)
				diff(t, w.f.all(), c.want)
				if n := w.f.count("recording"); n != c.recording {
					t.Errorf("recorded %d times: %q", n, w.f.calls)
				}
			})
		})
	}
}

// TestVoiceNoteOverRestarts: a process that ends while a voice note goes out leaves the text to the next
// one, which does not send the sound again.
func TestVoiceNoteOverRestarts(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "copy.sqlite")
	v := &voice{}
	bubbleWith(t, Settings{ReplyTo: ModeFirst}, v.use, captions, func(w *world) {
		w.f.hang = true
		w.finish(w.s.Begin(home, question, "in-1"), spokenAs(long))
		w.pass(time.Second) // the voice note is on its way
		w.crash(copied)
		w.f.hang = false
		w.restart(copied)
		diff(t, w.f.all(), []said{{Text: long, Class: chat.Assistant}})
		if len(v.asked) != 1 || len(w.unknown) != 0 {
			t.Errorf("spoken %d times, unknown %v", len(v.asked), w.unknown)
		}
	})
}
