package inbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/chat"
)

// photo is a part of an album in the open private chat.
func photo(n int, album, caption string) chat.Inbound {
	m := message(n, caption)
	m.Album, m.Attachments = album, []chat.Attachment{{Ref: fmt.Sprint("file", n)}}
	return m
}

func refs(m chat.Inbound) string {
	var out []string
	for _, a := range m.Attachments {
		out = append(out, a.Ref)
	}
	return strings.Join(out, " ")
}

// TestAlbum: the parts of an album are one message, answered once, by the newest id.
func TestAlbum(t *testing.T) {
	bubble(t, func(w *world) {
		for n := 1; n <= 3; n++ {
			caption := ""
			if n == 1 {
				caption = "what is this?"
			}
			w.accept(photo(n, "a", caption))
			w.accept(photo(n, "a", caption))
			w.pass(700 * time.Millisecond)
		}
		if len(w.handled) != 0 {
			t.Fatalf("handled %q too early", w.texts())
		}
		w.pass(200 * time.Millisecond)
		if len(w.handled) != 1 {
			t.Fatalf("handled %q", w.texts())
		}
		m := w.last()
		if m.Seq != 1 || cmp.Diff([]int64{2, 3}, m.Merged) != "" || m.In.ID != "3" || m.In.Text != "what is this?" || refs(m.In) != "file1 file2 file3" || !m.In.Batched {
			t.Errorf("handled %+v", m)
		}
		got := w.dispatch(1)
		if cmp.Diff(m, got) != "" {
			t.Error(cmp.Diff(m, got))
		}
		if n := w.count("SELECT count(*) FROM inbound WHERE state = 'dispatched' AND attempts = 1"); n != 3 {
			t.Errorf("%d begun", n)
		}
		w.boot()
		if again := w.last(); again.Seq != 1 || !again.Interrupted || len(again.Merged) != 2 || refs(again.In) != refs(m.In) {
			t.Errorf("after a crash %+v", again)
		}
		w.done(1)
		if n := w.count("SELECT count(*) FROM inbound WHERE state = 'done' AND payload_json = ''"); n != 3 {
			t.Errorf("%d done", n)
		}
		w.accept(photo(2, "a", ""))
		w.pass(time.Minute)
		if len(w.handled) != 1 {
			t.Errorf("handled %q", w.texts())
		}
	})
}

// TestAlbumFails: an album that is given up is given up whole.
func TestAlbumFails(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(photo(1, "a", "hello"))
		w.accept(photo(2, "a", ""))
		w.pass(time.Second)
		if err := w.p.Failed(w.t.Context(), w.last().Seq, errors.New("no")); err != nil {
			t.Fatal(err)
		}
		if w.state(1) != "failed" || w.state(2) != "failed" {
			t.Errorf("states %s, %s", w.state(1), w.state(2))
		}
	})
}

// TestAlbumInARoom: people name the bot in one part of an album only.
func TestAlbumInARoom(t *testing.T) {
	bubble(t, func(w *world) {
		part := func(n int, sender, album string) chat.Inbound {
			m := inRoom(n, sender, "")
			m.Album, m.Attachments = album, []chat.Attachment{{Ref: fmt.Sprint("file", n)}}
			return m
		}
		named := part(1, "1", "a")
		named.Mentioned, named.Text = true, "@bot look"
		w.accept(named)
		w.accept(part(2, "1", "a"))
		w.accept(part(3, "2", "b"))
		w.accept(part(4, "1", ""))
		w.accept(part(5, "1", "a"))
		w.pass(time.Second)
		if len(w.handled) != 1 || refs(w.last().In) != "file1 file2 file5" || !w.last().In.Mentioned {
			t.Fatalf("handled %+v", w.handled)
		}
		w.accept(part(6, "1", "a"))
		w.pass(time.Second)
		if len(w.handled) != 1 {
			t.Error("a late part is for nobody")
		}
	})
}

// TestAlbumWithACommand: the command of a caption gets the whole album.
func TestAlbumWithACommand(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(photo(1, "a", "/status of these"))
		w.accept(photo(2, "a", ""))
		w.pass(time.Second)
		if len(w.handled) != 1 || w.last().In.Text != "/status of these" || refs(w.last().In) != "file1 file2" {
			t.Errorf("handled %+v", w.handled)
		}
	})
}

// TestAlbumOfManyFiles: eight go along, and it is said that there were more.
func TestAlbumOfManyFiles(t *testing.T) {
	bubble(t, func(w *world) {
		for n := range 10 {
			w.accept(photo(n, "a", ""))
		}
		w.pass(time.Second)
		if m := w.last(); len(w.handled) != 1 || len(m.In.Attachments) != maxFiles || !strings.Contains(m.In.Text, "2 more files") || len(m.Merged) != 9 {
			t.Errorf("handled %+v", w.handled)
		}
	})
}

// TestAlbumWithoutEnd: what is answered as one is bounded.
func TestAlbumWithoutEnd(t *testing.T) {
	bubble(t, func(w *world) {
		for n := range maxParts + 5 {
			m := photo(n, "a", fmt.Sprint(n))
			m.At = time.Now().Add(-time.Hour).Add(time.Duration(n) * time.Minute)
			w.accept(m)
		}
		w.pass(time.Second)
		if len(w.handled) != 2 || len(w.handled[0].Merged) != maxParts-1 || len(w.handled[1].Merged) != 4 {
			t.Errorf("handled %q", w.texts())
		}
	})
}

// debounced runs a test in which texts wait for two seconds.
func debounced(t *testing.T, test func(w *world)) {
	t.Helper()
	bubble(t, func(w *world) {
		w.cfg.Debounce = Debounce{Window: time.Hour / 120, ByChannel: map[string]time.Duration{"telegram": 2 * time.Second}}
		w.reload()
		test(w)
	})
}

func TestDebounce(t *testing.T) {
	debounced(t, func(w *world) {
		first := message(1, "hello")
		first.ReplyTo, first.Quote, first.QuoteFrom = "77", "quoted", chat.Sender{ID: "42"}
		w.accept(first)
		w.pass(1500 * time.Millisecond)
		w.accept(message(2, "are you there?"))
		w.pass(1500 * time.Millisecond)
		if len(w.handled) != 0 {
			t.Fatalf("handled %q too early", w.texts())
		}
		w.pass(time.Second)
		w.accept(message(3, "alone"))
		w.pass(3 * time.Second)
		if d := cmp.Diff([]string{"hello\nare you there?", "alone"}, w.texts()); d != "" {
			t.Fatal(d)
		}
		m, alone := w.handled[0].In, w.handled[1]
		if m.ID != "2" || !m.Batched || m.ReplyTo != "77" || m.Quote != "quoted" || m.QuoteFrom.ID != "42" || alone.In.Batched || alone.Merged != nil || alone.Seq != 3 {
			t.Errorf("handled %+v", w.handled)
		}
	})
}

// TestDebounceDoesNotWaitForever: who goes on writing gets an answer all the same.
func TestDebounceDoesNotWaitForever(t *testing.T) {
	debounced(t, func(w *world) {
		for n := range 10 {
			w.accept(message(n, fmt.Sprint(n)))
			w.pass(1900 * time.Millisecond)
		}
		w.pass(3 * time.Second)
		if d := cmp.Diff([]string{"0\n1\n2\n3\n4\n5", "6\n7\n8\n9"}, w.texts()); d != "" {
			t.Error(d)
		}
	})
}

// TestWhatEndsTheWaiting: media, commands, interactions, albums and other people end it at once, and
// nothing overtakes what waits.
func TestWhatEndsTheWaiting(t *testing.T) {
	file := message(2, "look")
	file.Attachments = []chat.Attachment{{Ref: "f"}}
	command := message(2, "/status")
	native := message(2, "/model")
	native.Via = "token"
	other := message(2, "me too")
	other.Sender.ID = "10"
	for name, m := range map[string]chat.Inbound{"media": file, "a command": command, "an interaction": native} {
		t.Run(name, func(t *testing.T) {
			debounced(t, func(w *world) {
				w.accept(message(1, "hello"))
				w.accept(m)
				if d := cmp.Diff([]string{"hello", m.Text}, w.texts()); d != "" {
					t.Error(d)
				}
			})
		})
	}
	for name, m := range map[string]chat.Inbound{"another person": other, "an album": photo(2, "a", "photo"), "too much text": message(2, strings.Repeat("x", maxText-5))} {
		t.Run(name, func(t *testing.T) {
			debounced(t, func(w *world) {
				w.accept(message(1, "hello"))
				w.accept(m)
				if d := cmp.Diff([]string{"hello"}, w.texts()); d != "" {
					t.Error(d)
				}
				w.pass(3 * time.Second)
				if d := cmp.Diff([]string{"hello", m.Text}, w.texts()); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// TestWhoDoesNotWait: other places, the owner at the machine, and messages that are not for the bot.
func TestWhoDoesNotWait(t *testing.T) {
	debounced(t, func(w *world) {
		w.accept(mention(1, "1", "hello"))
		thread := mention(2, "1", "in a thread")
		thread.Address.Thread = "T"
		w.accept(thread)
		w.accept(inRoom(3, "1", "just talk"))
		w.accept(inRoom(4, "2", "just talk"))
		if len(w.handled) != 0 {
			t.Errorf("handled %q", w.texts())
		}
		local := message(5, "at the machine")
		local.Sender.Local = true
		w.accept(local)
		if d := cmp.Diff([]string{"at the machine"}, w.texts()); d != "" {
			t.Error(d)
		}
		w.pass(3 * time.Second)
		if len(w.handled) != 3 {
			t.Errorf("handled %q", w.texts())
		}
	})
}

// TestEditsReachWhatWaits: also what is already with the Handler, and also when its first part is gone.
func TestEditsReachWhatWaits(t *testing.T) {
	debounced(t, func(w *world) {
		for n, text := range []string{"one", "two", "three"} {
			w.accept(message(n, text))
		}
		w.accept(edited(message(1, ""), 1, "zwei"))
		w.accept(deleted(message(0, "")))
		w.pass(3 * time.Second)
		if d := cmp.Diff([]string{"zwei\nthree"}, w.texts()); d != "" {
			t.Fatal(d)
		}
		w.accept(edited(message(2, ""), 1, "drei"))
		seq := w.last().Seq
		if got := w.dispatch(seq); got.In.Text != "zwei\ndrei" || seq != 1 || cmp.Diff([]int64{2, 3}, got.Merged) != "" {
			t.Errorf("the turn got %+v", got)
		}
		w.boot()
		if got := w.last(); got.Seq != seq || got.In.Text != "zwei\ndrei" {
			t.Errorf("after a crash %+v", got)
		}
		w.done(seq)
		if n := w.count("SELECT count(*) FROM inbound WHERE state != 'done'"); n != 0 || len(w.gone) != 0 {
			t.Errorf("%d are open, told %v", n, w.gone)
		}
	})
}

// TestLatePart: a part that is stored when its group has just been handed over belongs to it as long as
// no turn has begun, and stands alone afterwards.
func TestLatePart(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(message(1, "one"))
		late := func(n int) added {
			m := message(n, fmt.Sprint(n))
			a, err := w.p.journal.add(w.t.Context(), entry{m: m, from: m.Address, lead: 1}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if a := late(2); a.lead != 1 {
			t.Errorf("before the turn: %+v", a)
		}
		if got := w.dispatch(1).In.Text; got != "one\n2" {
			t.Errorf("the turn got %q", got)
		}
		if a := late(3); a.lead != 0 || a.seq != 3 {
			t.Errorf("during the turn: %+v", a)
		}
		w.done(1)
		if a := late(4); a.lead != 0 || w.state(3) != "received" {
			t.Errorf("after the turn: %+v", a)
		}
	})
}

// TestDeleted: a message that is deleted before its turn gets none, and whoever queued it is told.
func TestDeleted(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(message(1, "oops"))
		w.accept(message(2, "begun"))
		w.dispatch(2)
		for _, m := range []chat.Inbound{message(1, ""), message(1, ""), message(2, ""), message(3, ""), {}} {
			w.accept(deleted(m))
		}
		if d := cmp.Diff([]int64{1}, w.gone); d != "" {
			t.Error(d)
		}
		if _, err := w.p.Dispatched(w.t.Context(), 1); !errors.Is(err, ErrClosed) {
			t.Errorf("a turn for a deleted message: %v", err)
		}
		if w.state(1) != "done" || w.state(2) != "dispatched" || w.count("SELECT count(*) FROM inbound WHERE payload_json = ''") != 1 {
			t.Errorf("states %s, %s", w.state(1), w.state(2))
		}
		w.accept(message(1, "oops"))
		w.boot()
		if d := cmp.Diff([]string{"begun"}, w.texts()); d != "" {
			t.Error(d)
		}
	})
}

// TestDeletedWhileWaiting: nobody hears of it, and what comes next is complete.
func TestDeletedWhileWaiting(t *testing.T) {
	debounced(t, func(w *world) {
		w.accept(message(1, "oops"))
		w.accept(deleted(message(1, "")))
		w.accept(message(2, "hello"))
		w.accept(message(3, "again"))
		w.pass(3 * time.Second)
		if d := cmp.Diff([]string{"hello\nagain"}, w.texts()); d != "" || len(w.gone) != 0 {
			t.Error(d, w.gone)
		}
		w.accept(message(4, "one"))
		w.accept(message(5, "two"))
		w.pass(3 * time.Second)
		w.accept(deleted(message(4, "")))
		w.accept(deleted(message(5, "")))
		if d := cmp.Diff([]int64{4}, w.gone); d != "" {
			t.Error(d)
		}
	})
}

// TestWaitingConcurrently: whatever meets, every message has one turn.
func TestWaitingConcurrently(t *testing.T) {
	debounced(t, func(w *world) {
		const senders, each = 4, 15
		var wg sync.WaitGroup
		for sender := range senders {
			wg.Go(func() {
				for n := range each {
					m := mention(100*sender+n, fmt.Sprint(sender), fmt.Sprint(100*sender+n))
					if n%4 == 3 {
						m.Album, m.Attachments = fmt.Sprint("a", sender), []chat.Attachment{{Ref: "f"}}
					}
					if err := w.p.Accept(w.t.Context(), m); err != nil {
						t.Error(err)
					}
					if n%5 == 4 {
						time.Sleep(time.Duration(n) * 100 * time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
		w.pass(time.Minute)
		seen := map[string]int{}
		for _, m := range w.handled {
			for _, text := range strings.Split(w.dispatch(m.Seq).In.Text, "\n") {
				seen[text]++
			}
			w.done(m.Seq)
		}
		for text, n := range seen {
			if n != 1 {
				t.Errorf("%s: %d turns", text, n)
			}
		}
		if len(seen) != senders*each || w.count("SELECT count(*) FROM inbound WHERE state != 'done'") != 0 {
			t.Errorf("%d messages", len(seen))
		}
	})
}

// TestStoppingLosesNothing: what waits when the bot stops waits again after the start, and is joined by
// what comes then.
func TestStoppingLosesNothing(t *testing.T) {
	debounced(t, func(w *world) {
		w.accept(message(1, "hello"))
		w.accept(message(2, "are you there?"))
		w.accept(photo(3, "a", "photo"))
		w.p.Close()
		w.pass(time.Minute)
		w.accept(message(4, "late"))
		if d := cmp.Diff([]string{"hello\nare you there?"}, w.texts()); d != "" {
			t.Fatal(d)
		}
		w.boot()
		if d := cmp.Diff([]string{"hello\nare you there?", "photo"}, w.texts()); d != "" {
			t.Errorf("in order: %s", d)
		}
		w.accept(message(5, "later"))
		w.pass(3 * time.Second)
		if d := cmp.Diff([]string{"hello\nare you there?", "photo", "late\nlater"}, w.texts()); d != "" {
			t.Error(d)
		}
	})
}

// TestAlbumOverACrash: parts that the platform delivers again after a crash join those that it does not.
func TestAlbumOverACrash(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(photo(1, "a", "hello"))
		w.boot()
		w.accept(photo(1, "a", "hello"))
		w.accept(photo(2, "a", ""))
		w.pass(time.Second)
		if len(w.handled) != 1 || refs(w.last().In) != "file1 file2" {
			t.Errorf("handled %+v", w.handled)
		}
	})
}

// TestWaitingOverATroubledStore: what cannot be read when its time is over is handed over later, and
// what comes after it waits for it.
func TestWaitingOverATroubledStore(t *testing.T) {
	debounced(t, func(w *world) {
		w.p.log = slog.New(slog.NewTextHandler(io.Discard, nil))
		w.accept(message(1, "hello"))
		rename := func(from, to string) {
			if _, err := w.db.Writer().ExecContext(w.t.Context(), "ALTER TABLE "+from+" RENAME TO "+to); err != nil {
				t.Fatal(err)
			}
		}
		rename("inbound", "away")
		w.pass(3 * time.Second)
		if err := w.p.Accept(w.t.Context(), message(2, "/status")); err == nil || len(w.handled) != 0 {
			t.Errorf("%v, handled %q", err, w.texts())
		}
		rename("away", "inbound")
		w.pass(2 * time.Second)
		w.accept(message(2, "/status"))
		if d := cmp.Diff([]string{"hello", "/status"}, w.texts()); d != "" {
			t.Error(d)
		}
	})
}

// TestWaitingIsBounded: beyond so many conversations nobody waits, and the memory is free afterwards.
func TestWaitingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handed := 0
		var mu sync.Mutex
		c := newCollector(slog.New(slog.DiscardHandler), func(context.Context, int64) error {
			mu.Lock()
			defer mu.Unlock()
			handed++
			return nil
		})
		opened := 0
		for n := range maxGroups + 10 {
			if c.open(t.Context(), int64(n+1), 1, part{place: fmt.Sprint(n), window: time.Second}) {
				opened++
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if opened != maxGroups || handed != maxGroups || len(c.groups) != 0 {
			t.Errorf("%d opened, %d handed over, %d left", opened, handed, len(c.groups))
		}
		c.close()
	})
}

// TestClosingWaits: nothing is handed over any more once close has returned.
func TestClosingWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handed := 0
		c := newCollector(slog.New(slog.DiscardHandler), func(context.Context, int64) error {
			time.Sleep(time.Second) // a slow store
			handed++
			return nil
		})
		for n := range 2 {
			c.open(t.Context(), int64(n+1), 1, part{place: fmt.Sprint(n), window: time.Duration(n+1) * time.Second})
		}
		time.Sleep(1500 * time.Millisecond) // the first is leaving
		c.close()
		if handed != 1 {
			t.Errorf("%d handed over", handed)
		}
		time.Sleep(time.Minute)
		if handed != 1 || c.open(t.Context(), 3, 1, part{place: "p", window: time.Second}) {
			t.Errorf("%d handed over", handed)
		}
	})
}

// TestNothingOvertakes: while a group is being handed over, what follows in its place waits.
func TestNothingOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		c := newCollector(slog.New(slog.DiscardHandler), func(context.Context, int64) error {
			time.Sleep(time.Second) // a slow store
			order = append(order, "group")
			return nil
		})
		x := part{place: "p", sender: "1", window: time.Second}
		c.open(t.Context(), 1, 1, x)
		time.Sleep(time.Second)
		synctest.Wait() // it is leaving
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.join(impatient, part{place: "p"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		lead, err := c.join(t.Context(), x)
		if lead != 0 || err != nil {
			t.Errorf("joined %d, %v", lead, err)
		}
		if order = append(order, "next"); fmt.Sprint(order) != "[group next]" {
			t.Errorf("order %v", order)
		}
		c.close()
	})
}
