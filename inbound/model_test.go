package inbound

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"understudy/chat"
)

// said is a message as the reference knows it.
type said struct {
	in      chat.Inbound
	heard   bool // it is only context
	deleted bool // before its turn began
	begun   bool
	done    int // turns that ended well, or that had it as context
}

// reference is what a Pipeline must do, as simple as it can be said: every message that is for the bot
// gets one turn, in the order of its conversation, as it was when the turn began.
type reference struct {
	*world
	rt      *rapid.T
	said    []*said
	album   int
	crashes int            // while a turn ran
	last    map[string]int // the newest message of a conversation whose turn began
	broken  string
}

// action is a thing that may happen.
type action struct {
	name string
	do   func()
}

// String implements fmt.Stringer, for the story of a failure.
func (a action) String() string { return a.name }

// tb hides from rapid that it runs inside a bubble, where it must not ask for the deadline.
type tb struct{ testing.TB }

// TestEveryMessageOnce lets messages, duplicates, edits, deletions, albums, turns, pauses and crashes
// meet in any order.
func TestEveryMessageOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		run := 0
		rapid.Check(tb{t}, func(rt *rapid.T) {
			run++
			w := &world{t: t, path: filepath.Join(dir, fmt.Sprint(run)), sent: map[string]chat.Outbound{}, answers: map[string]Answer{}}
			rules := open
			rules.SeedThreads = rapid.Bool().Draw(rt, "seed")
			w.cfg = Config{MaxAge: 7 * 24 * time.Hour, Access: map[Account]Access{{Channel: "telegram", Name: "open"}: rules}}
			if rapid.Bool().Draw(rt, "debounce") {
				w.cfg.Debounce.Window = time.Second
			}
			w.boot()
			defer w.close()
			r := &reference{world: w, rt: rt, last: map[string]int{}}
			for range rapid.IntRange(5, 40).Draw(rt, "steps") {
				r.step()
			}
			r.finish()
			if r.broken != "" {
				rt.Fatal(r.broken)
			}
		})
	})
}

// String implements fmt.Stringer, for the story of a failure.
func (s *said) String() string { return s.in.Text }

func (r *reference) fail(format string, args ...any) {
	if r.broken == "" {
		r.broken = fmt.Sprintf(format, args...)
	}
}

// step does one thing at random.
func (r *reference) step() {
	x := rapid.SampledFrom([]action{
		{"text", func() { r.say("t", nil) }},
		{"text", func() { r.say("t", nil) }},
		{"command", func() { r.say("/status t", nil) }},
		{"album", func() {
			r.say("t", func(m *chat.Inbound) {
				if rapid.IntRange(0, 3).Draw(r.rt, "new album") == 0 {
					r.album++
				}
				m.Album, m.Attachments = fmt.Sprint("album", r.album), []chat.Attachment{{Ref: m.ID}}
			})
		}},
		{"file", func() { r.say("t", func(m *chat.Inbound) { m.Attachments = []chat.Attachment{{Ref: m.ID}} }) }},
		{"overheard", r.overhear},
		{"duplicate", func() { r.some(func(s *said) { r.accept(s.in) }) }},
		{"edit", r.edit},
		{"delete", r.delete},
		{"pause", func() { r.pass(time.Duration(rapid.IntRange(100, 3000).Draw(r.rt, "ms")) * time.Millisecond) }},
		{"turn", r.turn},
		{"turn", r.turn},
		{"crash", r.boot},
		{"crash in a turn", r.crash},
	}).Draw(r.rt, "step")
	x.do()
}

// say accepts a new message that is for the bot.
func (r *reference) say(text string, change func(*chat.Inbound)) {
	n := len(r.said)
	m := message(n, fmt.Sprint(text, n))
	switch rapid.IntRange(0, 3).Draw(r.rt, "where") {
	case 0:
		m.Address.Conversation, m.Sender.ID = "8", "8"
	case 1:
		m = mention(n, "1", m.Text)
	case 2:
		m = mention(n, "2", m.Text)
	}
	m.At = time.Now().Add(-48 * time.Hour).Add(time.Duration(n) * time.Minute) // nobody is too fast
	if change != nil {
		change(&m)
	}
	r.said = append(r.said, &said{in: m})
	r.accept(m)
}

func (r *reference) overhear() {
	m := inRoom(len(r.said), "3", fmt.Sprint("t", len(r.said)))
	r.said = append(r.said, &said{in: m, heard: true})
	r.accept(m)
}

// some does something with one of the messages, if there is one.
func (r *reference) some(do func(*said)) {
	if len(r.said) > 0 {
		do(rapid.SampledFrom(r.said).Draw(r.rt, "which"))
	}
}

func (r *reference) edit() {
	r.some(func(s *said) {
		if s.heard || s.deleted {
			return
		}
		text := s.in.Text + "x"
		if strings.HasPrefix(text, "/") || s.begun {
			r.accept(edited(s.in, len(text), "changed"))
			if !s.begun {
				r.accept(edited(s.in, len(text)+1000, s.in.Text))
			}
			return
		}
		r.accept(edited(s.in, len(text), text))
		s.in.Text = text
	})
}

func (r *reference) delete() {
	r.some(func(s *said) {
		r.accept(deleted(s.in))
		s.deleted = s.deleted || !s.begun
	})
}

// turn answers what was handed over first.
func (r *reference) turn() {
	if seq, parts := r.begin(); seq != 0 {
		r.done(seq)
		for _, s := range parts {
			s.done++
		}
	}
}

// crash ends the process while a turn runs.
func (r *reference) crash() {
	if r.crashes < maxContinuations {
		r.crashes++
		r.begin()
		r.boot()
	}
}

// begin begins the turn of what was handed over first, and looks at what it gets.
func (r *reference) begin() (int64, []*said) {
	if len(r.handled) == 0 {
		return 0, nil
	}
	seq := r.handled[0].Seq
	r.handled = r.handled[1:]
	m, err := r.p.Dispatched(r.world.t.Context(), seq)
	if errors.Is(err, ErrClosed) {
		return 0, nil // the end will tell whether somebody was forgotten
	}
	if err != nil {
		r.fail("%v", err)
		return 0, nil
	}
	var parts []*said
	for _, text := range strings.Split(m.In.Text, "\n") {
		s := r.byText(text)
		if s == nil {
			r.fail("a turn for %q", m.In.Text)
			return seq, nil
		}
		parts = append(parts, s)
	}
	r.check(m, parts)
	for _, l := range m.History {
		if !strings.HasPrefix(l.Text, textEdited) {
			parts = append(parts, r.byText(l.Text))
			continue
		}
		i := slices.IndexFunc(r.said, func(s *said) bool { return s.in.ID == l.ID })
		if i < 0 || !r.said[i].begun || r.said[i].deleted {
			r.fail("an edit of %q, which was not begun, or is deleted", l.ID)
		}
	}
	return seq, parts
}

func (r *reference) byText(text string) *said {
	i := slices.IndexFunc(r.said, func(s *said) bool { return s.in.Text == text })
	if i < 0 {
		return nil
	}
	return r.said[i]
}

// check says what is wrong with a turn.
func (r *reference) check(m Message, parts []*said) {
	where := parts[0].in.Address.Conversation
	if len(m.Merged) != len(parts)-1 && len(m.Merged) != len(parts) { // the first may be deleted
		r.fail("%d parts, merged %v", len(parts), m.Merged)
	}
	for _, s := range parts {
		n := slices.Index(r.said, s)
		switch {
		case s.heard:
			r.fail("%q is not for the bot", s.in.Text)
		case s.deleted:
			r.fail("%q was deleted", s.in.Text)
		case s.done > 0:
			r.fail("%q was answered", s.in.Text)
		case s.in.Address.Conversation != where || s.in.Sender != parts[0].in.Sender || s.in.Album != parts[0].in.Album:
			r.fail("%q and %q together", parts[0].in.Text, s.in.Text)
		case n < r.last[where] && !s.begun:
			r.fail("%q is out of order", s.in.Text)
		}
		r.last[where], s.begun = max(n, r.last[where]), true
	}
}

// finish answers all that is left, and looks for what was forgotten.
func (r *reference) finish() {
	r.pass(time.Minute)
	for len(r.handled) > 0 {
		r.turn()
	}
	for _, s := range r.said {
		kept := 0
		if s.heard {
			kept = r.count("SELECT count(*) FROM history_buffer WHERE message_id = ?", s.in.ID)
		}
		switch n := s.done + kept; {
		case s.heard && s.deleted && n <= 1: // it may have been with a message already
		case s.deleted && !s.heard && n == 0:
		case !s.deleted && n == 1:
		default:
			r.fail("%q was answered or told %d times", s.in.Text, n)
		}
	}
	if n := r.count("SELECT count(*) FROM inbound WHERE state != 'done'"); n != 0 || len(r.order) != 0 {
		r.fail("%d rows are open, said %+v", n, r.order)
	}
}
