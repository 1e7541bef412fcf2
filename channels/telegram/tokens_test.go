package telegram

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/channels/channelstest"

	emulator "understudy/internal/emulate/telegram"
)

// A reload starts the new account while the old one still polls: the new one waits, nothing is
// polled twice, and nothing is lost.
func TestReloadNeverPollsTwice(t *testing.T) {
	tokens := NewTokens()
	prepare := func(a *account) func(*Config, *Deps) {
		return func(_ *Config, d *Deps) { d.Tokens, d.Offsets = tokens, a.offsets }
	}
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.stop()
		<-a.done
		old := newBot(t, a.srv, prepare(a))
		a.Bot = old
		a.start(t)
		conflictsBefore := len(conflicts(a.got.Statuses()))

		next := &account{Bot: newBot(t, a.srv, prepare(a)), srv: a.srv, got: channelstest.NewRecorder(), done: make(chan error, 1)}
		next.start(t)
		if s := next.got.State(); s != channels.Connecting {
			t.Errorf("the second account is %q", s)
		}
		a.srv.UserSays(ann, ann, "to the first")
		a.got.Next(t)
		polls := len(a.srv.Calls("getUpdates"))
		timer := time.NewTimer(3 * time.Minute)
		<-timer.C
		if n := len(a.srv.Calls("getUpdates")) - polls; n > 5 {
			t.Errorf("%d polls in 3 minutes", n)
		}
		a.stop()
		<-a.done
		a.done <- nil
		a.srv.UserSays(ann, ann, "to the second")
		if in := next.got.Next(t); in.Text != "to the second" {
			t.Errorf("got %+v", in)
		}
		if n := len(conflicts(a.got.Statuses())) + len(conflicts(next.got.Statuses())) - conflictsBefore; n != 0 {
			t.Errorf("%d conflicts", n)
		}
		next.stop()
		<-next.done
		next.Close()
		old.Close()
	})
}

func conflicts(all []channels.Status) (out []channels.Status) {
	for _, s := range all {
		if s.State == channels.Down {
			out = append(out, s)
		}
	}
	return out
}

func TestTokensAreHeldByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := NewTokens()
		var holders, most atomic.Int64
		ended := make(chan struct{})
		for range 20 {
			go func() {
				release, err := tokens.acquire(t.Context(), "1", func() {})
				if err != nil {
					t.Error(err)
				}
				if n := holders.Add(1); n > most.Load() {
					most.Store(n)
				}
				<-time.After(time.Second)
				holders.Add(-1)
				release()
				ended <- struct{}{}
			}()
		}
		for range 20 {
			<-ended
		}
		if most.Load() != 1 {
			t.Errorf("%d hold one token", most.Load())
		}
		if _, err := tokens.acquire(t.Context(), "1", func() { t.Error("waits for nobody") }); err != nil {
			t.Error(err)
		}
		if _, err := tokens.acquire(t.Context(), "2", func() { t.Error("waits for another bot") }); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := tokens.acquire(ctx, "1", func() {}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
