package inbound

import (
	"testing"
	"time"

	"understudy/chat"
)

// TestSeededThreads: a message that is answered in a new thread belongs to it from the start, and is
// still found by its edits, its twins and its deletion.
func TestSeededThreads(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) { a.SeedThreads = true })
		root := mention(1, "1", "helo")
		w.accept(root)
		twin := root
		twin.EventKey = "slack:T:Ev2"
		w.accept(twin)
		w.accept(edited(root, 1, "hello"))
		if len(w.handled) != 1 || w.last().In.Address.Thread != "1" {
			t.Fatalf("handled %+v", w.handled)
		}
		if got := w.dispatch(1).In; got.Text != "hello" || got.Address.Thread != "1" {
			t.Errorf("the turn got %+v", got)
		}
		w.boot()
		if w.last().In.Address.Thread != "1" {
			t.Errorf("after a crash: %+v", w.last().In.Address)
		}
		reply := mention(2, "1", "more")
		reply.Address.Thread = "1"
		command := inRoom(3, "1", "/status")
		private := message(4, "hello")
		native := inRoom(5, "1", "/model")
		native.Via = "token"
		group := mention(6, "1", "hello")
		group.Address.Kind = chat.Group
		for want, m := range map[string]chat.Inbound{"1": reply, "": command} {
			w.accept(m)
			if got := w.last().In.Address.Thread; got != want {
				t.Errorf("%s: thread %q", m.Text, got)
			}
		}
		for _, m := range []chat.Inbound{private, native, group} {
			w.accept(m)
			if got := w.last().In.Address.Thread; got != "" {
				t.Errorf("%+v: thread %q", m.Address, got)
			}
		}
		w.rules(func(a *Access) { a.SeedThreads = false })
		w.accept(mention(7, "1", "hello"))
		if got := w.last().In.Address.Thread; got != "" {
			t.Errorf("switched off: thread %q", got)
		}
	})
}

// TestImplicitThread: in a thread where the bot answers nobody needs to name it again, for thirty days,
// over restarts, and nobody gets in by that who may not.
func TestImplicitThread(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) {
			a.SeedThreads, a.ImplicitThread = true, true
			a.Groups = map[string]Group{"C1": {AllowFrom: []string{"1"}}}
		})
		in := func(n int, sender, thread string) bool {
			m := inRoom(n, sender, "and then?")
			m.Address.Thread = thread
			before := len(w.handled)
			w.accept(m)
			return len(w.handled) > before
		}
		if in(1, "1", "10") {
			t.Error("a thread of others")
		}
		w.accept(mention(10, "1", "hello"))
		if in(16, "1", "10") {
			t.Error("a thread where the bot has not answered yet")
		}
		seq := w.last().Seq
		w.dispatch(seq)
		if err := w.p.Participated(w.t.Context(), seq); err != nil {
			t.Fatal(err)
		}
		w.done(seq)
		w.boot()
		w.handled = nil
		if !in(11, "1", "10") || in(12, "666", "10") || in(13, "1", "99") || in(14, "1", "") {
			t.Errorf("handled %q", w.texts())
		}
		silent := mention(30, "1", "no reply to this")
		w.accept(silent)
		w.dispatch(w.last().Seq)
		w.done(w.last().Seq)
		if err := w.p.Participated(w.t.Context(), w.last().Seq); err != nil || in(31, "1", "30") {
			t.Errorf("a turn without an answer, or one that is closed, made a thread the bot's: %v", err)
		}
		command := inRoom(20, "1", "/status")
		command.Address.Thread = "20"
		w.accept(command)
		if in(21, "1", "20") {
			t.Error("a command made a thread the bot's")
		}
		w.pass(participatesFor + time.Second)
		if in(15, "1", "10") {
			t.Error("still after thirty days")
		}
		if err := w.p.Prune(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.count("SELECT count(*) FROM thread_participation"); n != 0 {
			t.Errorf("%d threads", n)
		}
	})
}

// TestThreadAnsweredBeforeACrash: that the answer was sent is found out by the next start.
func TestThreadAnsweredBeforeACrash(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) { a.SeedThreads, a.ImplicitThread = true, true })
		w.accept(mention(10, "1", "hello"))
		w.dispatch(1)
		w.answers[TurnID(1)] = AnswerSent
		w.boot()
		m := inRoom(11, "1", "and then?")
		m.Address.Thread = "10"
		w.accept(m)
		if len(w.handled) != 1 || w.state(1) != "done" {
			t.Errorf("handled %q, state %s", w.texts(), w.state(1))
		}
	})
}

// TestTwoEventsOfOneMessage: it is answered once, also when only the later event says that it is for
// the bot; then it is no context of itself.
func TestTwoEventsOfOneMessage(t *testing.T) {
	for _, limit := range []int{0, DefaultHistory} {
		bubble(t, func(w *world) {
			w.rules(func(a *Access) { a.HistoryLimit = &limit })
			plain := inRoom(1, "1", "hi")
			plain.EventKey = "slack:T:Ev3"
			named := mention(1, "1", "hi")
			named.EventKey = "slack:T:Ev4"
			w.accept(plain)
			w.accept(plain)
			w.accept(named)
			w.accept(named)
			w.accept(plain)
			if len(w.handled) != 1 || w.last().History != nil {
				t.Fatalf("handled %+v", w.handled)
			}
			w.done(1)
			later := inRoom(2, "1", "hi again")
			laterNamed := mention(2, "1", "hi again")
			laterNamed.EventKey = "slack:T:Ev6"
			w.accept(later)
			w.pass(4 * time.Minute)
			w.boot()
			w.accept(laterNamed)
			w.accept(later)
			w.accept(laterNamed)
			if len(w.handled) != 1 || w.last().In.Text != "hi again" {
				t.Errorf("handled %q", w.texts())
			}
			w.done(w.last().Seq)
			w.boot()
			third := laterNamed
			third.EventKey = "slack:T:Ev7"
			w.accept(third)
			w.accept(laterNamed)
			if len(w.handled) != 0 {
				t.Errorf("handled %q again", w.texts())
			}
		})
	}
}
