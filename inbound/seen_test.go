package inbound

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

// marks writes the marks of the open account in short, the latest first.
func (w *world) marks(since time.Time) []string {
	w.t.Helper()
	list, err := w.p.Seen("telegram", "open").Marks(w.t.Context(), since, channels.MostConversations)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, m := range list {
		out = append(out, fmt.Sprintf("%s/%s %s %s %s", m.Address.Conversation, m.Address.Thread, m.Address.Kind, m.Space, m.LastID))
	}
	return out
}

// TestSeen: the marks of places where the bot was called, as far as anything that was accepted.
func TestSeen(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) { a.SeedThreads = true })
		start := time.Now()
		w.accept(inRoom(1, "1", "talk")) // the bot was never called here
		if got := w.marks(time.Time{}); got != nil {
			t.Errorf("marks %q", got)
		}
		w.pass(time.Second)
		w.accept(mention(2, "1", "hello"))
		w.pass(time.Second)
		w.accept(message(3, "private"))
		w.pass(time.Second)
		w.accept(inRoom(4, "2", "more talk"))
		command := inRoom(5, "2", "/model")
		command.Via, command.ID = "token", "interaction"
		w.accept(command)
		late := inRoom(6, "2", "from before")
		late.At = start
		w.accept(late)
		refused := stranger(7, "66")
		w.accept(refused)
		w.accept(edited(inRoom(4, "2", ""), 1, "changed"))
		want := []string{"C1/ channel G 4", "9/ direct  3", "C1/2 channel G 2"}
		if d := cmp.Diff(want, w.marks(start)); d != "" {
			t.Error(d)
		}
		w.boot()
		if d := cmp.Diff(want[:1], w.marks(start.Add(3*time.Second))); d != "" {
			t.Errorf("the latest: %s", d)
		}
		list, err := w.p.Seen("telegram", "open").Marks(w.t.Context(), start, 1)
		if err != nil || len(list) != 1 || !list[0].At.Equal(start.Add(3*time.Second)) || list[0].Address.Account != "open" {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err := w.p.Seen("telegram", "").Marks(w.t.Context(), start, 9); err != nil || list != nil {
			t.Errorf("another account: %+v, %v", list, err)
		}
		w.pass(participatesFor + time.Second)
		if err := w.p.Prune(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.count("SELECT count(*) FROM seen"); n != 0 {
			t.Errorf("%d marks", n)
		}
	})
}

// TestCatchUp: what was missed is answered within its bounds; the rest is only known.
func TestCatchUp(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) {
			a.CatchUp = channels.CatchUp{MaxAge: 10 * time.Minute, MaxMessages: 2}
		})
		missed := func(n int, sender string, ago time.Duration) chat.Inbound {
			m := mention(n, sender, fmt.Sprint(n))
			m.CatchUp, m.At = true, time.Now().Add(-ago)
			return m
		}
		overheard := missed(1, "1", 9*time.Minute)
		overheard.Mentioned = false
		for _, m := range []chat.Inbound{
			missed(0, "1", time.Hour), overheard, missed(2, "2", 8*time.Minute), missed(3, "1", 7*time.Minute), missed(4, "1", time.Minute),
		} {
			w.accept(m)
			w.accept(m)
		}
		if d := cmp.Diff([]string{"2", "3"}, w.texts()); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"1: 1"}, lines(w.handled[0])); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"C1/ channel G 4"}, w.marks(time.Time{})); d != "" {
			t.Error(d)
		}
		if n := w.count("SELECT count(*) FROM inbound"); n != 2 {
			t.Errorf("%d rows", n)
		}
		w.accept(mention(5, "1", "live"))
		w.pass(2 * time.Minute)
		w.accept(missed(6, "1", time.Minute))
		if d := cmp.Diff([]string{"2", "3", "live", "6"}, w.texts()); d != "" {
			t.Errorf("after the gap, and in the next one: %s", d)
		}
		w.pass(2 * time.Minute)
		w.boot()
		for n := 2; n < 5; n++ { // fetched again, over a restart
			w.accept(missed(n, "1", 5*time.Minute))
		}
		w.accept(missed(9, "1", 4*time.Minute))
		w.accept(missed(10, "1", 4*time.Minute))
		if got := w.texts(); got[len(got)-1] != "10" {
			t.Errorf("what was known counts: %q", got)
		}
		w.pass(2 * time.Minute)
		w.rules(func(a *Access) { a.CatchUp = channels.CatchUp{} })
		w.accept(missed(7, "1", DefaultMaxAge-time.Minute))
		w.accept(missed(8, "1", DefaultMaxAge+time.Minute))
		if got := w.last().In.Text; got != "7" {
			t.Errorf("by default: %s", got)
		}
	})
}

// TestGapsAreBounded: many conversations take no more memory than the bound.
func TestGapsAreBounded(t *testing.T) {
	g, l := newGaps(), newLoops()
	for n := range 3 * maxGaps {
		g.admit(fmt.Sprint(n), 1, time.Unix(0, 0))
		l.admit(fmt.Sprint(n), DefaultLoops(), time.Unix(0, 0))
	}
	if len(g.places) > maxGaps || len(l.bots) > maxLoops {
		t.Errorf("%d places, %d bots", len(g.places), len(l.bots))
	}
}
