package inbound

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

func TestAccept(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(message(1, "hello"))
		if len(w.handled) != 1 {
			t.Fatalf("handled %d messages", len(w.handled))
		}
		m := w.handled[0]
		if m.In.Text != "hello" || m.Owner || m.Attempts != 0 || m.Interrupted || m.In.At.IsZero() {
			t.Errorf("handled %+v", m)
		}
		if got := w.state(m.Seq); got != "received" {
			t.Errorf("state %s", got)
		}
		if got := w.dispatch(m.Seq); got.Attempts != 0 || w.state(m.Seq) != "dispatched" {
			t.Errorf("dispatched %+v", got)
		}
		w.done(m.Seq)
		if _, err := w.p.Dispatched(w.t.Context(), m.Seq); !errors.Is(err, ErrClosed) {
			t.Errorf("a second turn for a message that is done: %v", err)
		}
		if w.state(m.Seq) != "done" || w.count("SELECT count(*) FROM inbound WHERE payload_json != ''") != 0 {
			t.Error("the text of an answered message is kept")
		}
	})
}

// TestDedupe: the same message is handled once: redelivered, under another event id,
// and after a restart, when memory is gone.
func TestDedupe(t *testing.T) {
	bubble(t, func(w *world) {
		first := message(1, "hello")
		first.AltKeys = append(first.AltKeys, first.AltKeys[0], "", first.EventKey)
		twin := first
		twin.EventKey = "slack:T:Ev4"
		third := first
		third.EventKey = "slack:T:Ev5"
		w.accept(first)
		w.accept(first)
		w.accept(twin)
		w.accept(third)
		w.done(w.handled[0].Seq)
		if len(w.handled) != 1 {
			t.Errorf("handled %q", w.texts())
		}
		w.boot()
		w.accept(twin)
		w.accept(third)
		w.accept(first)
		if len(w.handled) != 0 {
			t.Errorf("handled %q again", w.texts())
		}
		if n := w.count("SELECT count(*) FROM inbound_keys"); n != 3 {
			t.Errorf("%d keys", n)
		}
		w.pass(8 * 24 * time.Hour)
		if err := w.p.Prune(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.count("SELECT (SELECT count(*) FROM inbound_keys) + (SELECT count(*) FROM inbound)"); n != 0 {
			t.Errorf("%d rows after eight days", n)
		}
	})
}

// TestRefusedLeavesNothing: of what is refused only the event's key is kept (spec/chat.md §2.2).
func TestRefusedLeavesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		bot := message(1, "secret text")
		bot.Sender.Bot = true
		unknown := message(2, "secret text")
		unknown.Address.Account = "nowhere"
		group := message(3, "secret text")
		group.Address.Account, group.Address.Kind = "", chat.Group
		silent := message(4, "secret text")
		silent.Address.Kind = chat.Group
		edited := stranger(5, "66")
		edited.Edited = true
		for _, m := range []chat.Inbound{bot, unknown, group, silent, edited} {
			w.accept(m)
			w.accept(m)
		}
		if len(w.handled)+len(w.order) != 0 {
			t.Errorf("handled %q, said %v", w.texts(), w.order)
		}
		if n := w.count("SELECT (SELECT count(*) FROM inbound) + (SELECT count(*) FROM pairing_requests)"); n != 0 {
			t.Errorf("%d rows", n)
		}
		if n := w.count("SELECT count(*) FROM inbound_keys WHERE event_key LIKE 'tg:1:%'"); n != 5 {
			t.Errorf("%d keys", n)
		}
	})
}

func TestMentionGate(t *testing.T) {
	bubble(t, func(w *world) {
		for n, text := range []string{"just talk", "@bot hello", "/status"} {
			m := message(n, text)
			m.Address.Kind = chat.Room
			m.Mentioned = strings.HasPrefix(text, "@")
			w.accept(m)
		}
		if d := cmp.Diff([]string{"@bot hello", "/status"}, w.texts()); d != "" {
			t.Error(d)
		}
	})
}

// TestOwners: local senders, configured ones, and nobody by wildcard or in another channel.
func TestOwners(t *testing.T) {
	bubble(t, func(w *world) {
		w.cfg.Owners = []string{"slack:9", "Telegram: 8"}
		if err := w.p.Reload(w.cfg); err != nil {
			t.Fatal(err)
		}
		other := message(1, "")
		owner := message(2, "")
		owner.Sender.ID = "8"
		local := chat.Inbound{EventKey: "web:1", Address: chat.Address{Channel: "web", Kind: chat.Direct}, Sender: chat.Sender{Local: true}}
		for _, m := range []chat.Inbound{other, owner, local} {
			w.accept(m)
		}
		var got []bool
		for _, m := range w.handled {
			got = append(got, m.Owner)
		}
		if d := cmp.Diff([]bool{false, true, true}, got); d != "" {
			t.Error(d)
		}
	})
}

// TestEdits: an edit counts while no turn has begun; afterwards there is no second answer.
func TestEdits(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(message(1, "helo"))
		edit := func(key, text string) {
			m := message(1, text)
			m.EventKey, m.AltKeys, m.Edited = key, []string{key + ":edit"}, true
			w.accept(m)
			w.accept(m)
		}
		edit("tg:1:50", "hello")
		edit("tg:1:51", "hello!")
		seq := w.handled[0].Seq
		if got := w.dispatch(seq).In; got.Text != "hello!" || !got.Edited || got.ID != "1" {
			t.Errorf("the turn got %+v", got)
		}
		edit("tg:1:52", "too late")
		w.done(seq)
		edit("tg:1:53", "much too late")
		stray := message(77, "never seen")
		stray.Edited = true
		w.accept(stray)
		foreign := message(1, "not mine")
		foreign.EventKey, foreign.Edited, foreign.Sender.ID = "tg:1:54", true, "10"
		w.accept(foreign)
		edit("tg:1:55", "much too late") // a link preview
		if len(w.handled) != 1 || w.count("SELECT count(*) FROM inbound") != 1 {
			t.Errorf("handled %q", w.texts())
		}
		w.accept(message(2, "and now?"))
		if d := cmp.Diff([]string{"9: " + textEdited + "much too late"}, lines(w.last())); d != "" {
			t.Error(d)
		}
		w.accept(message(3, "once more"))
		if got := lines(w.last()); len(got) != 0 {
			t.Errorf("told again %q", got)
		}
	})
}

// TestEditByOther: nobody changes what another sender wrote.
func TestEditByOther(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(message(1, "mine"))
		m := message(1, "not mine")
		m.EventKey, m.Edited, m.Sender.ID = "tg:1:54", true, "10"
		w.accept(m)
		if got := w.dispatch(w.handled[0].Seq).In.Text; got != "mine" {
			t.Errorf("the turn got %q", got)
		}
	})
}

func TestCaps(t *testing.T) {
	bubble(t, func(w *world) {
		m := message(1, strings.Repeat("é", maxText))
		m.Quote = "bad \xff bytes"
		m.Attachments = make([]chat.Attachment, 20)
		w.accept(m)
		got := w.handled[0].In
		if len(got.Text) > maxText || !utf8.ValidString(got.Text) || !strings.HasSuffix(got.Text, textCut) {
			t.Errorf("text of %d bytes ends with %q", len(got.Text), got.Text[len(got.Text)-50:])
		}
		if len(got.Attachments) != maxFiles || !utf8.ValidString(got.Quote) {
			t.Errorf("%d files, quote %q", len(got.Attachments), got.Quote)
		}
	})
}

// TestTooFast: the twenty-first message of a minute is left out and its sender told once; a queue
// that the platform held back, and the owner's own page, are no flood.
func TestTooFast(t *testing.T) {
	bubble(t, func(w *world) {
		for n := range 25 {
			w.accept(message(n, "spam"))
		}
		if len(w.handled) != senderBurst || len(w.order) != 1 || w.order[0].Class != chat.Notice {
			t.Errorf("handled %d, said %+v", len(w.handled), w.order)
		}
		other := message(100, "calm")
		other.Sender.ID = "10"
		w.accept(other)
		w.pass(time.Minute)
		w.accept(message(101, "calm again"))
		if n := len(w.handled); n != senderBurst+2 {
			t.Errorf("handled %d", n)
		}
		start := time.Now().Add(-24 * time.Hour)
		for n := range 40 {
			m := message(200+n, "held back")
			m.Sender.ID, m.At = "11", start.Add(time.Duration(n)*10*time.Second)
			w.accept(m)
			local := message(300+n, "typing fast")
			local.Sender.Local = true
			w.accept(local)
		}
		if n := len(w.handled); n != senderBurst+2+80 {
			t.Errorf("handled %d", n)
		}
	})
}

// TestNotStored: an event that cannot be stored is not acknowledged, and comes again.
func TestNotStored(t *testing.T) {
	bubble(t, func(w *world) {
		if _, err := w.db.Writer().ExecContext(w.t.Context(), "ALTER TABLE inbound RENAME TO away"); err != nil {
			t.Fatal(err)
		}
		if err := w.p.Accept(w.t.Context(), message(1, "hello")); err == nil {
			t.Fatal("an event that was not stored is acknowledged")
		}
		if _, err := w.db.Writer().ExecContext(w.t.Context(), "ALTER TABLE away RENAME TO inbound"); err != nil {
			t.Fatal(err)
		}
		w.accept(message(1, "hello"))
		if len(w.handled) != 1 {
			t.Errorf("handled %q", w.texts())
		}
	})
}

func TestAcceptWaitsForRecovery(t *testing.T) {
	bubble(t, func(w *world) {
		w.close()
		w.make()
		if err := w.p.Accept(w.t.Context(), message(1, "hello")); !errors.Is(err, ErrNotRecovered) {
			t.Errorf("accepted before the recovery: %v", err)
		}
		if err := w.p.Recover(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		w.accept(message(1, "hello"))
		keyless := message(2, "hello")
		keyless.EventKey = ""
		w.accept(keyless)
		if len(w.handled) != 1 {
			t.Errorf("handled %q", w.texts())
		}
		var told []channels.State
		w.p.Status(channels.Status{State: channels.Connecting})
		w.p.deps.Status = func(s channels.Status) { told = append(told, s.State) }
		w.p.Status(channels.Status{State: channels.Connected})
		if d := cmp.Diff([]channels.State{channels.Connected}, told); d != "" {
			t.Error(d)
		}
	})
}

func TestReloadRefusesWrongRules(t *testing.T) {
	bubble(t, func(w *world) {
		if err := w.p.Reload(Config{Owners: []string{"*"}}); err == nil {
			t.Error("wrong rules were taken over")
		}
		w.accept(message(1, "hello"))
		if len(w.handled) != 1 {
			t.Error("the old rules are gone")
		}
	})
}

func TestRecentIsBounded(t *testing.T) {
	r := newRecent()
	now := time.Unix(0, 0)
	for n := range 2 * recentSize {
		r.add([]string{message(n, "").EventKey}, now, false)
	}
	if len(r.at) != recentSize {
		t.Errorf("%d keys", len(r.at))
	}
	last := []string{message(2*recentSize-1, "").EventKey}
	seen := func(keys []string, at time.Time) bool { known, _ := r.seen(keys, at); return known }
	if !seen(last, now) || seen(last, now.Add(recentFor)) || seen([]string{message(0, "").EventKey}, now) {
		t.Error("the wrong keys are remembered")
	}
	p := newPace()
	for n := range 3 * maxSenders {
		p.admit(message(n, "").ID, now)
	}
	if len(p.senders) > maxSenders {
		t.Errorf("%d senders", len(p.senders))
	}
}

func TestCursor(t *testing.T) {
	bubble(t, func(w *world) {
		ctx := w.t.Context()
		c, err := OpenCursor(ctx, w.db, "telegram", "", "offset:111")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.Load(ctx); n != 0 || err != nil {
			t.Errorf("empty: %d, %v", n, err)
		}
		for _, n := range []int64{926831434, 5000} {
			if err := c.Save(ctx, n); err != nil {
				t.Fatal(err)
			}
			if got, err := c.Load(ctx); got != n || err != nil {
				t.Errorf("%d, %v", got, err)
			}
		}
		other, err := OpenCursor(ctx, w.db, "telegram", "", "offset:222")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := other.Load(ctx); n != 0 || err != nil {
			t.Errorf("another bot's: %d, %v", n, err)
		}
		if err := c.SetValue(ctx, "no number"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Load(ctx); err == nil {
			t.Error("text as a number")
		}
	})
}

// TestAcceptConcurrently: one message that arrives many times at once is handled once.
func TestAcceptConcurrently(t *testing.T) {
	bubble(t, func(w *world) {
		var wg sync.WaitGroup
		for n := range 16 {
			wg.Go(func() {
				for range 4 {
					m := message(n%4, "hello")
					m.EventKey = fmt.Sprint("slack:T:Ev", n)
					if err := w.p.Accept(w.t.Context(), m); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if len(w.handled) != 4 {
			t.Errorf("handled %d messages, want 4", len(w.handled))
		}
	})
}
