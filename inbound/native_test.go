package inbound

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/chat"
)

// native makes an interaction of a message.
func native(m chat.Inbound) chat.Inbound {
	m.Via, m.Text = "secret-token", "/status"
	return m
}

// TestRefusedInteractions: who waits for an interaction is told, everybody else is refused in silence.
func TestRefusedInteractions(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) {
			a.DMPolicy, a.AllowFrom = PolicyAllowlist, []string{"1"}
			a.GroupPolicy = PolicyAllowlist
			a.Groups = map[string]Group{"C1": {}, "C3": {Enabled: ptr(false)}}
		})
		elsewhere, off, unknown := inRoom(3, "1", ""), inRoom(4, "1", ""), message(5, "")
		elsewhere.Address.Conversation, off.Address.Conversation, unknown.Address.Account = "C2", "C3", "nowhere"
		for _, c := range []struct {
			m    chat.Inbound
			want string
		}{
			{inRoom(1, "2", ""), textNotAuthorised},
			{message(2, ""), textNotAuthorised},
			{elsewhere, textWrongChannel},
			{off, textWrongChannel},
			{unknown, textNotAuthorised},
		} {
			m := native(c.m)
			if w.p.Authorised(w.t.Context(), m) {
				t.Errorf("%+v is authorised", m.Address)
			}
			if got := w.refused(m); got != c.want {
				t.Errorf("%+v: told %q", m.Address, got)
			}
			if got := w.refused(m); got != "" {
				t.Errorf("%+v: told twice", m.Address)
			}
			m.Via, m.EventKey = "", m.EventKey+":typed"
			if got := w.refused(m); got != "" {
				t.Errorf("a typed command is answered with %q", got)
			}
		}
		if len(w.handled)+len(w.order) != 0 || w.count("SELECT count(*) FROM inbound") != 0 {
			t.Errorf("handled %q, said %+v", w.texts(), w.order)
		}
		good := native(inRoom(9, "1", ""))
		if !w.p.Authorised(w.t.Context(), good) || w.refused(good) != "" || len(w.handled) != 1 || w.last().In.Via != good.Via {
			t.Errorf("handled %+v", w.handled)
		}
	})
}

// TestAuthorisedChangesNothing: a suggestion for somebody who types pairs nobody and counts nothing.
func TestAuthorisedChangesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		for range 3 * senderBurst {
			if w.p.Authorised(w.t.Context(), stranger(1, "41")) || !w.p.Authorised(w.t.Context(), message(2, "")) {
				t.Fatal("wrong")
			}
		}
		if n := w.count("SELECT (SELECT count(*) FROM pairing_requests) + (SELECT count(*) FROM inbound_keys) + (SELECT count(*) FROM seen)"); n != 0 || len(w.order) != 0 {
			t.Errorf("%d rows, said %+v", n, w.order)
		}
		w.accept(message(2, "hello"))
		if len(w.handled) != 1 {
			t.Error("the question counted as a message")
		}
	})
}

// TestPairingByInteraction: a stranger who uses a native command gets the code as its reply, once.
func TestPairingByInteraction(t *testing.T) {
	bubble(t, func(w *world) {
		if got := w.refused(native(stranger(1, "41"))); got != "" || len(w.order) != 1 || w.order[0].Via != "secret-token" {
			t.Fatalf("told %q, said %+v", got, w.order)
		}
		if got := w.refused(native(stranger(2, "41"))); got != textNotAuthorised || len(w.order) != 1 {
			t.Errorf("told %q, said %+v", got, w.order)
		}
	})
}

// TestInteractionsTooFast: each is told, without a message in the conversation.
func TestInteractionsTooFast(t *testing.T) {
	bubble(t, func(w *world) {
		for n := range senderBurst {
			w.accept(native(message(n, "")))
		}
		for n := range 2 {
			if got := w.refused(native(message(100+n, ""))); got != textTooFast {
				t.Errorf("told %q", got)
			}
		}
		if len(w.order) != 0 {
			t.Errorf("said %+v", w.order)
		}
	})
}

// TestBotLoop: two bots that answer each other stop, and are heard again after a while.
func TestBotLoop(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) { a.AllowBots = BotsMentioned })
		n := 0
		beep := func(sender string) bool {
			n++
			m := mention(n, sender, "beep")
			m.Sender.Bot = true
			before := len(w.handled)
			w.accept(m)
			return len(w.handled) > before
		}
		heard := 0
		for range 75 { // a bot that answers every second
			if beep("B") {
				heard++
			}
			w.pass(time.Second)
		}
		if heard != DefaultLoops().Events || !beep("C") {
			t.Errorf("heard %d times", heard)
		}
		w.pass(5 * time.Second)
		if !beep("B") {
			t.Error("still not heard after the cooldown")
		}
		quiet := 0
		for range 30 {
			w.pass(4 * time.Second)
			if beep("B") {
				quiet++
			}
		}
		if quiet != 30 || len(w.order) != 0 {
			t.Errorf("a slow bot was heard %d times; said %+v", quiet, w.order)
		}
		unnamed := inRoom(1000, "B", "beep")
		unnamed.Sender.Bot = true
		w.accept(unnamed)
		if n := w.count("SELECT count(*) FROM history_buffer"); n != 0 {
			t.Error("a bot that does not name this one is context")
		}
	})
}

// TestBotLoopAsConfigured: the bounds are those of the configuration, from a reload on.
func TestBotLoopAsConfigured(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) { a.AllowBots = BotsAlways })
		w.cfg.Loops = Loops{Events: 3, Window: 10 * time.Second, Cooldown: time.Hour}
		w.reload()
		n := 0
		heard := func(times int, every time.Duration) int {
			before := len(w.handled)
			for range times {
				n++
				m := mention(n, "B", "beep")
				m.Sender.Bot = true
				w.accept(m)
				w.pass(every)
			}
			return len(w.handled) - before
		}
		if got := heard(10, time.Second); got != 3 {
			t.Errorf("heard %d times", got)
		}
		w.pass(30 * time.Minute)
		if got := heard(1, time.Second); got != 0 {
			t.Error("heard within the cooldown")
		}
		w.pass(30 * time.Minute)
		if got := heard(10, 6*time.Second); got != 10 {
			t.Errorf("a slow bot is heard %d times", got)
		}
	})
	for _, l := range []Loops{{Events: -1, Window: time.Minute, Cooldown: time.Minute}, {Events: 5, Cooldown: time.Minute}, {Events: 5, Window: time.Minute}} {
		if err := (Config{Loops: l}).Validate(); err == nil {
			t.Errorf("%+v is valid", l)
		}
	}
}

// TestDeadLetters: a message that was given up is listed, and gets another try as a new one.
func TestDeadLetters(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(inRoom(1, "1", "context"))
		for n := 2; n <= 3; n++ {
			m := mention(n, "1", "poison")
			m.Album = "a"
			w.accept(m)
		}
		w.pass(time.Second)
		for range 1 + maxContinuations {
			w.dispatch(1)
			w.boot()
		}
		if w.state(1) != "dead" || w.state(2) != "dead" || len(w.handled) != 0 {
			t.Fatalf("state %s", w.state(1))
		}
		list, err := w.p.DeadLetters(w.t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		want := DeadLetter{
			ID: 1, Account: Account{"telegram", "open"}, Conversation: "C1", Sender: chat.Sender{ID: "1", Name: "Person 1"}, Text: "poison\npoison",
			Reason: "interrupted too often", Attempts: 4, ReceivedAt: list[0].ReceivedAt,
		}
		if d := cmp.Diff(want, list[0]); d != "" {
			t.Error(d)
		}
		seq, err := w.p.Resubmit(w.t.Context(), 1)
		if err != nil || seq == 1 || len(w.handled) != 1 {
			t.Fatalf("%d, %v, handled %+v", seq, err, w.handled)
		}
		m := w.last()
		if m.Seq != seq || m.Attempts != 0 || m.Interrupted || m.In.Text != "poison\npoison" || m.In.ID != "3" || cmp.Diff([]string{"1: context"}, lines(m)) != "" {
			t.Errorf("handled %+v", m)
		}
		if _, err := w.p.Resubmit(w.t.Context(), 1); !errors.Is(err, ErrNoDeadLetter) {
			t.Errorf("a second time: %v", err)
		}
		w.dispatch(seq)
		w.done(seq)
		if list, err := w.p.DeadLetters(w.t.Context()); err != nil || list != nil {
			t.Errorf("%+v, %v", list, err)
		}
		if n := w.count("SELECT count(*) FROM inbound WHERE payload_json != '' OR history_json != ''"); n != 0 {
			t.Errorf("%d texts are kept", n)
		}
	})
}

// TestResubmitWithoutServer: the next start answers it, however old it is.
func TestResubmitWithoutServer(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(message(1, "poison"))
		for range 1 + maxContinuations {
			w.dispatch(1)
			w.boot()
		}
		w.pass(24 * time.Hour)
		d, err := OpenDeadLetters(w.t.Context(), w.db)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := d.List(w.t.Context()); err != nil || len(list) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
		seq, err := d.Resubmit(w.t.Context(), 1)
		if err != nil || len(w.handled) != 0 {
			t.Fatalf("%d, %v, handled %+v", seq, err, w.handled)
		}
		if _, err := d.Resubmit(w.t.Context(), 99); !errors.Is(err, ErrNoDeadLetter) {
			t.Errorf("no such letter: %v", err)
		}
		w.boot()
		if len(w.handled) != 1 || w.last().Seq != seq || w.last().Interrupted {
			t.Errorf("handled %+v", w.handled)
		}
	})
}
