package delivery

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/chat"
	"understudy/internal/sqlite"
)

// The matrix of spec/chat.md §2.3: every mode in every kind of conversation, in a thread and at top
// level, on a channel with references, with threads that a reference opens, and with neither; with
// previews, native streams and none; with files, notices at every moment, and every end of a turn.

// ability is what a reference is on a channel.
type ability uint8

const (
	none ability = iota
	refers
	opensThreads
	abilities
)

// showing is how a turn is seen while it writes.
type showing uint8

const (
	hidden showing = iota
	edited
	streamed
	showings
)

// moments at which notices are said, as bits.
const (
	before = 1 << iota
	during
	after
)

// moment is one point of the matrix.
type moment struct {
	mode     Mode
	kind     chat.Kind
	inThread bool
	ability  ability
	showing  showing
	end      chat.Class // Assistant, Error; 0 = the turn says nothing
	media    bool
	batched  bool
	notices  int
}

func (m moment) String() string {
	return fmt.Sprintf("%s in %s, thread %v, ability %d, showing %d, end %s, media %v, batched %v, notices %03b",
		m.mode, m.kind, m.inThread, m.ability, m.showing, m.end, m.media, m.batched, m.notices)
}

// matrix returns every point.
func matrix() []moment {
	var all []moment
	for _, mode := range []Mode{ModeOff, ModeFirst, ModeAll, ModeBatched} {
		for _, kind := range []chat.Kind{chat.Direct, chat.Group, chat.Room} {
			for bits := range 1 << 2 {
				for a := range abilities {
					for s := range showings {
						m := moment{mode: mode, kind: kind, inThread: bits&1 > 0, batched: bits&2 > 0, ability: a, showing: s}
						all = append(all, m.ends()...)
					}
				}
			}
		}
	}
	return all
}

// ends returns the point with every end, file and notice.
func (m moment) ends() []moment {
	var all []moment
	for _, m.end = range []chat.Class{chat.Assistant, chat.Error, 0} {
		for _, m.media = range []bool{false, true} {
			for _, m.notices = range []int{0, before, during, after, before | during | after} {
				if m.end == chat.Assistant && !m.media || m.fully() && (m.end == chat.Assistant || !m.media) {
					all = append(all, m)
				}
			}
		}
	}
	return all
}

// fully reports whether notices are said at every moment, or never. Such turns also have a later
// message.
func (m moment) fully() bool { return m.notices == 0 || m.notices == before|during|after }

// spoken is a message of a conversation.
type spoken struct{ What, ReplyTo, Thread string }

const (
	matrixAsked = "q"
	firstPart   = "one two three four."
	secondPart  = "five six seven eight."
)

// rules are the sentences of §2.3, written down once more and without the code. The mutations
// replace one of them.
type rules struct {
	attaches   func(m moment) bool                // does the mode attach anything in this turn
	refers     func(m moment, who string) bool    // where a reference is only a reference
	opens      func(m moment, who string) bool    // where a reference opens a thread
	becomes    func(m moment) bool                // does the preview become the first message
	takes      func(m moment) bool                // has the turn an answer, so that a later message has none of its rights
	goesBehind func(m moment, notice string) bool // is the notice below the first message
}

func theRules() rules {
	return rules{
		attaches: func(m moment) bool {
			return m.mode == ModeFirst || m.mode == ModeAll || m.mode == ModeBatched && m.batched
		},
		refers: func(m moment, who string) bool {
			return who == "first" || m.mode == ModeAll && who != "notice"
		},
		opens: func(m moment, who string) bool {
			return !m.inThread && (who != "later" || m.mode == ModeAll)
		},
		becomes:    func(m moment) bool { return m.showing != hidden && m.end == chat.Assistant && !m.media },
		takes:      func(m moment) bool { return m.end != 0 },
		goesBehind: func(_ moment, notice string) bool { return notice == "during" },
	}
}

// expects returns the conversation that the rules want.
func (r rules) expects(m moment) []spoken {
	var out []spoken
	say := func(what, who string) {
		s := spoken{What: what}
		if m.inThread {
			s.Thread = "th"
		}
		if r.attaches(m) && (m.ability == refers && r.refers(m, who) || m.ability == opensThreads && r.opens(m, who)) {
			s.ReplyTo = matrixAsked
		}
		out = append(out, s)
	}
	notice := func(bit int, name string) {
		if m.notices&bit > 0 {
			say("notice "+name, "notice")
		}
	}
	notice(before, "before")
	if r.becomes(m) {
		say(firstPart, "first")
	}
	if !r.becomes(m) || r.goesBehind(m, "during") {
		notice(during, "during")
	}
	switch {
	case m.end == chat.Error:
		say("sorry", "first")
	case m.end == chat.Assistant && !r.becomes(m):
		say(firstPart, "first")
	}
	if m.end == chat.Assistant {
		say(secondPart, "more")
		if m.media {
			say("file", "more")
		}
	}
	notice(after, "after")
	switch {
	case !m.fully():
	case r.takes(m) || m.mode == ModeBatched: // what is said outside of a turn answers no batch
		say("later", "later")
	default:
		say("later", "first")
	}
	return out
}

// played is what came of the points.
type played struct {
	points []moment
	said   [][]spoken
	turns  []*Turn
	firsts []string // ids of the messages with the first part, or the error
}

// play runs a turn for each point at once.
func play(t *testing.T, points []moment) *played {
	p := &played{points: points, said: make([][]spoken, len(points)), firsts: make([]string, len(points))}
	path := filepath.Join(t.TempDir(), "bot.sqlite")
	synctest.Test(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{BusyTimeout: -1, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, f: newPlatform(), db: db}
		w.make()
		fakes := map[string]*platform{}
		for _, m := range points {
			if fakes[m.account()] == nil {
				fakes[m.account()] = w.adopt(m)
			}
		}
		w.run()
		for i, m := range points {
			p.turns = append(p.turns, w.s.Begin(m.address(i), &chat.Inbound{ID: matrixAsked, Batched: m.batched}, fmt.Sprint("t", i)))
		}
		w.act(p)
		w.halt()
		w.close()
		for _, f := range fakes {
			p.collect(f)
		}
	})
	return p
}

// account names an account for the mode, the ability and the way of showing.
func (m moment) account() string { return fmt.Sprint(m.mode, m.ability, m.showing) }

func (m moment) address(i int) chat.Address {
	to := chat.Address{Channel: "fake", Account: m.account(), Conversation: fmt.Sprint(i), Kind: m.kind}
	if m.inThread {
		to.Thread = "th"
	}
	return to
}

// adopt registers a platform for a point's account.
func (w *world) adopt(m moment) *platform {
	f := newPlatform()
	f.traits.Account, f.traits.TextLimit = m.account(), 30
	f.traits.References, f.traits.OpensThreads = m.ability == refers, m.ability == opensThreads
	set := Settings{
		ReplyTo: m.mode, Previews: m.showing != hidden, NativeStream: m.showing == streamed,
		ReplyToByKind: map[chat.Kind]Mode{chat.Room: m.mode},
	}
	if err := w.s.Register(f, set); err != nil {
		w.t.Fatal(err)
	}
	return f
}

// act plays all turns in step.
func (w *world) act(p *played) {
	each := func(do func(i int, m moment, turn *Turn)) {
		for i, m := range p.points {
			do(i, m, p.turns[i])
		}
		w.pass(5 * time.Second)
	}
	notice := func(bit int, name string) func(int, moment, *Turn) {
		return func(_ int, m moment, turn *Turn) {
			if m.notices&bit > 0 {
				turn.Notify(chat.Outbound{Markdown: "notice " + name})
			}
		}
	}
	each(notice(before, "before"))
	each(func(_ int, _ moment, turn *Turn) { turn.Stream("one two") })
	each(func(i int, m moment, turn *Turn) {
		if m.notices&during > 0 { // another model goes on
			turn.Restart()
			notice(during, "during")(i, m, turn)
		}
	})
	each(func(_ int, m moment, turn *Turn) {
		o := chat.Outbound{Class: m.end, Markdown: firstPart + "\n\n" + secondPart}
		switch m.end {
		case 0:
			turn.Cancel()
			return
		case chat.Error:
			o.Markdown = "sorry"
		}
		if m.media {
			o.Media = []chat.Attachment{{Name: "file"}}
		}
		w.finish(turn, o)
	})
	each(notice(after, "after"))
	each(func(i int, m moment, _ *Turn) {
		if !m.fully() {
			return
		}
		o := chat.Outbound{To: m.address(i), Class: chat.Assistant, Markdown: "later", TurnID: fmt.Sprint("t", i), Seq: 1, ReplyTo: matrixAsked}
		if err := w.s.Send(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	})
}

// collect sorts what stands on a platform by conversation.
func (p *played) collect(f *platform) {
	for _, m := range f.all() {
		var i int
		if _, err := fmt.Sscan(m.Conversation, &i); err != nil {
			panic(err)
		}
		what := m.Text + m.File
		if m.Growing {
			what += " (growing)"
		}
		p.said[i] = append(p.said[i], spoken{what, m.ReplyTo, m.Thread})
		if m.Text == firstPart || m.Class == chat.Error {
			p.firsts[i] = m.ID
		}
	}
}

// differs returns the points at which the rules want something else.
func (p *played) differs(r rules) []int {
	var out []int
	for i, m := range p.points {
		if !slices.Equal(p.said[i], r.expects(m)) {
			out = append(out, i)
		}
	}
	return out
}

func TestSlotMatrix(t *testing.T) {
	p := play(t, matrix())
	r := theRules()
	for n, i := range p.differs(r) {
		if n == 5 {
			t.Fatal("and more")
		}
		t.Errorf("%v (-want +got):\n%s", p.points[i], cmp.Diff(r.expects(p.points[i]), p.said[i]))
	}
	for i, m := range p.points {
		slot := p.turns[i].slot
		if slot.Consumed() != (m.end != 0) || slot.Owner() != p.firsts[i] {
			t.Fatalf("%v: the slot belongs to %q, want %q", m, slot.Owner(), p.firsts[i])
		}
	}
	t.Run("notices every mutation", func(t *testing.T) {
		for name, mutate := range mutations {
			broken := theRules()
			mutate(&broken)
			if len(p.differs(broken)) == 0 {
				t.Errorf("the matrix does not notice: %s", name)
			}
		}
	})
}

// mutations break one sentence of §2.3 each, as a tired person might.
var mutations = map[string]func(*rules){
	"off attaches":     func(r *rules) { r.attaches = func(m moment) bool { return m.mode != ModeBatched || m.batched } },
	"batched is first": func(r *rules) { r.attaches = func(m moment) bool { return m.mode != ModeOff } },
	"batched is off":   func(r *rules) { r.attaches = func(m moment) bool { return m.mode == ModeFirst || m.mode == ModeAll } },
	"one kind of conversation is off": func(r *rules) {
		old := r.attaches
		r.attaches = func(m moment) bool { return m.kind != chat.Room && old(m) }
	},
	"a notice refers": func(r *rules) {
		old := r.refers
		r.refers = func(m moment, who string) bool { return who == "notice" || old(m, who) }
	},
	"a notice takes the slot": func(r *rules) {
		old := r.refers
		r.refers = func(m moment, who string) bool {
			return old(m, who) && (who != "first" || m.notices&before == 0 || m.mode == ModeAll)
		}
	},
	"first refers more than once": func(r *rules) { r.refers = func(_ moment, who string) bool { return who != "notice" } },
	"all refers once":             func(r *rules) { r.refers = func(_ moment, who string) bool { return who == "first" } },
	"a thread in a thread": func(r *rules) {
		r.opens = func(m moment, who string) bool { return who != "later" || m.mode == ModeAll }
	},
	"a notice stays outside": func(r *rules) {
		old := r.opens
		r.opens = func(m moment, who string) bool { return who != "notice" && old(m, who) }
	},
	"the second message falls out": func(r *rules) {
		old := r.opens
		r.opens = func(m moment, who string) bool { return (who != "more" || m.mode == ModeAll) && old(m, who) }
	},
	"a later answer stays inside": func(r *rules) { r.opens = func(m moment, _ string) bool { return !m.inThread } },
	"a preview never becomes the answer": func(r *rules) {
		r.becomes = func(moment) bool { return false }
	},
	"a preview becomes an answer with a file": func(r *rules) {
		r.becomes = func(m moment) bool { return m.showing != hidden && m.end == chat.Assistant }
	},
	"a stream never becomes the answer": func(r *rules) {
		old := r.becomes
		r.becomes = func(m moment) bool { return m.showing != streamed && old(m) }
	},
	"a notice goes before the preview": func(r *rules) { r.goesBehind = func(moment, string) bool { return false } },
	"a silent turn has answered":       func(r *rules) { r.takes = func(moment) bool { return true } },
	"an error is no answer":            func(r *rules) { r.takes = func(m moment) bool { return m.end == chat.Assistant } },
}
