package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"understudy/channels"
	"understudy/chat"
)

// desk is a person at a terminal, in a bubble.
type desk struct {
	t     *testing.T
	bot   *bot
	keys  *io.PipeWriter
	vt    *vt
	asked chan chat.Inbound
	ended chan error
}

// sit runs Chat against a bot that the test plays; f sees the desk, and Chat must have ended after it.
func sit(t *testing.T, f func(*desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{t: t, vt: newVT(40), asked: make(chan chat.Inbound, 9), ended: make(chan error, 1)}
		b, stop := runBot(t, "", func(_ *bot, m chat.Inbound) { d.asked <- m })
		d.bot = b
		err := b.RegisterCommands(t.Context(), []channels.CommandInfo{
			{Name: "model", Description: "choose a model"}, {Name: "models", Description: "list"}, {Name: "status", Description: "state"},
		})
		if err != nil {
			t.Fatal(err)
		}
		link, err := b.Attach("main")
		if err != nil {
			t.Fatal(err)
		}
		in, keys := io.Pipe()
		d.keys = keys
		go func() {
			d.ended <- Chat(t.Context(), link, TTY{In: in, Out: d.vt, Size: func() (int, int) { return 40, 24 }, Color: true})
		}()
		synctest.Wait()
		f(d)
		keys.Close()
		link.Close()
		stop()
		synctest.Wait()
	})
}

func (d *desk) typed(text string) {
	d.t.Helper()
	if _, err := io.WriteString(d.keys, text); err != nil {
		d.t.Fatal(err)
	}
	synctest.Wait()
}

// ask types a message and returns it as it arrived.
func (d *desk) ask(text string) chat.Inbound {
	d.t.Helper()
	d.typed(text + "\r")
	return <-d.asked
}

func (d *desk) shows(want ...string) {
	d.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(strings.Join(want, "\n"), d.vt.text()); diff != "" {
		d.t.Errorf("screen (-want +got):\n%s", diff)
	}
}

func (d *desk) leaves(want error) {
	d.t.Helper()
	if err := <-d.ended; !errors.Is(err, want) {
		d.t.Errorf("ended with %v, want %v", err, want)
	}
}

// A word that grows over the edge moves to the next row, and what stands above stays.
func TestChatBreaksBetweenWords(t *testing.T) {
	sit(t, func(d *desk) {
		m := d.ask("hi")
		id := d.bot.say(m, chat.Assistant, "With it came three messages, a system pr", "p")
		d.shows("› hi", "With it came three messages, a system pr")
		d.bot.edit(m, id, "With it came three messages, a system prompt and", "p")
		d.shows("› hi", "With it came three messages, a system", "prompt and")
		d.bot.edit(m, id, "With it came three messages, a system prompt and one tool.", "p")
		d.shows("› hi", "With it came three messages, a system", "prompt and one tool.")
	})
}

func TestChatStreams(t *testing.T) {
	sit(t, func(d *desk) {
		m := d.ask("hi")
		d.shows("› hi", "…")
		id := d.bot.say(m, chat.Assistant, "Hello, I am the first model and I", "p")
		d.shows("› hi", "Hello, I am the first model and I")
		d.bot.edit(m, id, "Hello, I am the first model and I answer over several rows.\nThen", "p")
		d.shows("› hi", "Hello, I am the first model and I answer", "over several rows.", "Then")
		d.bot.edit(m, id, "…", "p") // it failed
		d.shows("› hi", "…")
		d.bot.say(m, chat.Notice, "↪️ Model Fallback: b/c", "")
		d.shows("› hi", "↪️ Model Fallback: b/c", "", "…")
		d.bot.edit(m, id, "The second one.", "p")
		d.bot.Finished(m.Address, m.ID, 1)
		d.bot.edit(m, id, "The second one.\nComplete.", "final")
		d.shows("› hi", "↪️ Model Fallback: b/c", "", "The second one.", "Complete.", "", "›")
		d.typed("/exit\r")
		d.leaves(nil)
	})
}

func TestChatShowsOtherClasses(t *testing.T) {
	sit(t, func(d *desk) {
		m := d.ask("/status")
		if _, err := d.bot.Send(d.t.Context(), channels.Piece{
			To: m.Address, Class: chat.Command, Text: "Model a/b\x1b[2J", Buttons: []chat.Button{{Label: "Use c", Command: "/model c"}},
		}); err != nil {
			d.t.Fatal(err)
		}
		d.bot.Finished(m.Address, m.ID, 1)
		d.shows("› /status", "Model a/b[2J", "  Use c  /model c", "", "›")
		m = d.ask("break")
		d.bot.say(m, chat.Error, "It failed.", "")
		d.bot.Finished(m.Address, m.ID, 1)
		d.shows("› /status", "Model a/b[2J", "  Use c  /model c", "", "› break", "It failed.", "", "›")
		d.typed("\x04")
		d.leaves(nil)
	})
}

func TestScreenListsChoices(t *testing.T) {
	v := newVT(40)
	s := &screen{w: crlf{v}, size: func() (int, int) { return 40, 24 }}
	list := []chat.Button{
		{Label: "gpt", Command: "/model o/gpt", Group: "openai"},
		{Label: "opus", Command: "/model a/opus", Group: "anthropic", Chosen: true},
		{Label: "mini\nx", Command: "/model o/mini", Group: "openai"},
	}
	for i := range mostChoices {
		list = append(list, chat.Button{Label: "more", Command: fmt.Sprint("/", i), Group: "rest"})
	}
	s.show(Event{Type: Sent, ID: "1", Class: chat.Command, Text: "Choose:", Choices: list})
	want := "Choose:\nopenai:\n  gpt  /model o/gpt\n  mini x  /model o/mini\nanthropic:\n✓ opus  /model a/opus\nrest:\n  more  /0"
	got := rowsOf(v)
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "/36\n  … and 3 more") {
		t.Errorf("screen:\n%s", got)
	}
}

func TestChatPreviewTakenBack(t *testing.T) {
	sit(t, func(d *desk) {
		m := d.ask("hi")
		id := d.bot.say(m, chat.Assistant, "half an answer", "p")
		if err := d.bot.Delete(d.t.Context(), m.Address, id); err != nil {
			d.t.Fatal(err)
		}
		d.bot.say(m, chat.Error, "It failed.", "")
		d.bot.Finished(m.Address, m.ID, 1)
		d.shows("› hi", "It failed.", "", "›")
		d.typed("/quit\r")
		d.leaves(nil)
	})
}

func TestChatInterrupts(t *testing.T) {
	sit(t, func(d *desk) {
		d.ask("hi")
		d.typed("typed ahead\x03")
		stop := <-d.asked
		if stop.Text != "/stop" {
			d.t.Errorf("Ctrl-C said %q", stop.Text)
		}
		d.bot.say(stop, chat.Command, "⏹ Stopped.", "")
		d.shows("› hi", "⏹ Stopped.")
		d.typed("\x03")
		d.leaves(nil)
	})
}

func TestChatKeepsWhatIsTypedAhead(t *testing.T) {
	sit(t, func(d *desk) {
		m := d.ask("one")
		d.typed("two\r")
		d.bot.say(m, chat.Error, "1", "")
		d.bot.Finished(m.Address, m.ID, 1)
		if m = <-d.asked; m.Text != "two" {
			d.t.Errorf("asked %q", m.Text)
		}
		d.typed("\x03\x03")
		d.leaves(nil)
	})
}

func TestChatUnasked(t *testing.T) {
	sit(t, func(d *desk) {
		other := chat.Inbound{Address: chat.Address{Channel: Channel, Conversation: "main"}}
		d.typed("half a li")
		d.bot.say(other, chat.Cron, "Daily report.", "")
		d.shows("Daily report.", "", "› half a li")
		id := d.bot.say(other, chat.Assistant, "from another", "p") // of another terminal
		d.bot.edit(other, id, "from another terminal", "p")
		d.shows("Daily report.", "", "› half a li")
		<-time.After(2 * quietAfter) // in the bubble
		d.shows("Daily report.", "", "from another terminal", "", "› half a li")
		m := d.ask("ne")
		if m.Text != "half a line" {
			d.t.Errorf("asked %q", m.Text)
		}
		late := d.bot.say(m, chat.Assistant, "The answer", "p")
		d.bot.Finished(m.Address, m.ID, 1)
		<-time.After(2 * grace) // its last form is late
		d.bot.edit(m, late, "The answer grew.", "final")
		d.shows("Daily report.", "", "from another terminal", "", "› half a line", "The answer", "", "… grew.", "", "›")
		d.typed("\x03")
		d.leaves(nil)
	})
}

func TestChatCompletes(t *testing.T) {
	sit(t, func(d *desk) {
		d.typed("/m\t")
		d.shows("› /model")
		d.typed("\t")
		d.shows("  /model          choose a model", "  /models         list", "› /model")
		d.typed("s\t")
		if m := d.ask("x"); m.Text != "/models x" {
			d.t.Errorf("asked %q", m.Text)
		}
		d.typed("\x03\x03")
		d.leaves(nil)
	})
}

func TestChatPastesLines(t *testing.T) {
	sit(t, func(d *desk) {
		d.typed("\x1b[200~one\rtwo\rthree\x1b[201~")
		if m := d.ask(""); m.Text != "one\ntwo\nthree" {
			d.t.Errorf("asked %q", m.Text)
		}
		d.typed("\x03\x03")
		d.leaves(nil)
	})
}

func TestChatRefused(t *testing.T) {
	sit(t, func(d *desk) {
		d.bot.refuse = errors.New("the message could not be stored")
		d.typed("hi\r")
		d.shows("› hi", "the message could not be stored", "", "›")
		d.typed("\x03")
		d.leaves(nil)
	})
}

func TestChatEndsWithTheBot(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b, stop := runBot(t, "", func(*bot, chat.Inbound) {})
			link, err := b.Attach("x")
			if err != nil {
				t.Fatal(err)
			}
			in, keys := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				ended <- Chat(context.Background(), link, TTY{In: in, Out: io.Discard, Size: func() (int, int) { return 0, 0 }})
			}()
			if busy {
				if _, err := io.WriteString(keys, "hi\r"); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			stop()
			if err := <-ended; !errors.Is(err, ErrGone) {
				t.Errorf("ended with %v", err)
			}
			keys.Close()
		})
	}
}

// TestScreenShowsTheLastText lets an answer change in any way: the screen ends with its last text.
func TestScreenShowsTheLastText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(5, 30).Draw(t, "width")
		v := newVT(width)
		s := &screen{w: crlf{v}, size: func() (int, int) { return width, 1000 }, color: true}
		text := rapid.StringMatching(`[a-c \n]{0,60}`)
		s.show(Event{Type: Sent, ID: "1", Class: chat.Assistant, Text: "start"})
		last := ""
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			if rapid.Bool().Draw(t, "grows") {
				last += text.Draw(t, "more")
			} else {
				last = text.Draw(t, "text")
			}
			s.show(Event{Type: Changed, ID: "1", Text: last})
		}
		want := newVT(width)
		if _, err := (crlf{want}).Write([]byte(strings.TrimRight(last, "\n"))); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(rowsOf(want), rowsOf(v)); d != "" {
			t.Fatalf("screen (-want +got):\n%s", d)
		}
	})
}

func rowsOf(v *vt) string {
	var rows []string
	for _, r := range v.rows {
		rows = append(rows, strings.TrimRight(string(r), " "))
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}

// crlf writes line ends as a terminal in raw mode needs them.
type crlf struct{ w io.Writer }

func (c crlf) Write(p []byte) (int, error) {
	_, err := c.w.Write([]byte(strings.ReplaceAll(string(p), "\n", "\r\n")))
	return len(p), err
}

func TestScreenOutOfReach(t *testing.T) {
	v := newVT(10)
	s := &screen{w: crlf{v}, size: func() (int, int) { return 10, 2 }}
	s.show(Event{Type: Sent, ID: "1", Class: chat.Assistant, Text: "1\n2\n3\n4"})
	s.show(Event{Type: Changed, ID: "1", Text: "new"})
	if d := cmp.Diff("1\n2\n3\n4\n(the answe\nr starts o\nver)\nnew", rowsOf(v)); d != "" {
		t.Errorf("screen (-want +got):\n%s", d)
	}
}

func TestRows(t *testing.T) {
	for text, want := range map[string]int{
		"": 1, "abc": 1, "abcde": 1, "abcdef": 2, "abcde\n": 2, "abcdefghij": 2, "abcdefghijk": 3, "日本語": 2, "abcd日": 2, "a\n\nb": 3,
	} {
		if got := rows(text, 5); got != want {
			t.Errorf("%q: %d rows, want %d", text, got, want)
		}
	}
}

func TestCells(t *testing.T) {
	for text, want := range map[string]int{"abc": 3, "日本": 4, "e\u0301": 1, "👋": 2, "한글": 4} {
		n := 0
		for _, r := range text {
			n += cells(r)
		}
		if n != want {
			t.Errorf("%q: %d cells, want %d", text, n, want)
		}
	}
}
