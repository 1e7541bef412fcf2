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

// TestOnlySpeakableClassesAreHeard: whatever way a thing leaves, its class alone decides.
func TestOnlySpeakableClassesAreHeard(t *testing.T) {
	v := &voice{}
	bubbleWith(t, Settings{Previews: true, ReplyTo: ModeFirst}, v.use, nil, func(w *world) {
		turn := w.s.Begin(home, question, "t0")
		turn.Stream("a preview")
		w.pass(4 * time.Second)
		turn.Notify(fallback)
		turn.Notify(chat.Outbound{Class: chat.Progress, Markdown: "still trying"})
		w.finish(turn, answer("the answer"))
		for c := chat.Assistant; c <= chat.Progress; c++ {
			if err := w.s.Send(w.t.Context(), chat.Outbound{To: home, Class: c, Markdown: "sent as " + c.String()}); err != nil {
				t.Fatal(err)
			}
			if turn := w.s.Begin(home, question, "t"+c.String()); c.Durable() {
				w.finish(turn, chat.Outbound{Class: c, Markdown: "finished as " + c.String()})
			}
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
