package telegram

import (
	"testing"
	"time"

	emulator "understudy/internal/emulate/telegram"
)

// What waited at Telegram while the account was off is marked; what came just before the start, or
// comes afterwards, is not.
func TestWhatWaitedIsCaughtUp(t *testing.T) {
	prepare := func(srv *emulator.Server, _ *Config, _ *Deps) {
		srv.UserSays(ann, ann, "long ago")
		timer := time.NewTimer(time.Hour)
		<-timer.C
		srv.UserSays(ann, ann, "just now")
	}
	running(t, emulator.Config{}, prepare, func(t *testing.T, a *account) {
		a.srv.UserSays(ann, ann, "live")
		for _, want := range []string{"long ago", "just now", "live"} {
			if in := a.got.Next(t); in.Text != want || in.CatchUp != (want == "long ago") {
				t.Errorf("got %q, caught up: %v", in.Text, in.CatchUp)
			}
		}
	})
}

// An account that reaches Telegram late has not heard what was said meanwhile.
func TestWhatWaitedForTheFirstPollIsCaughtUp(t *testing.T) {
	prepare := func(srv *emulator.Server, _ *Config, _ *Deps) {
		srv.Inject(emulator.Fault{Method: "getUpdates", Times: 12, Status: 502, Body: "<html>"})
	}
	running(t, emulator.Config{}, prepare, func(t *testing.T, a *account) {
		timer := time.NewTimer(time.Second)
		<-timer.C
		a.srv.UserSays(ann, ann, "early")
		if in := a.got.Next(t); !in.CatchUp {
			t.Errorf("got %+v", in)
		}
	})
}

// A webhook brings what waited in the same way.
func TestWhatWaitedForTheWebhookIsCaughtUp(t *testing.T) {
	listening(t, func(srv *emulator.Server, _ *Config, _ *Deps) {
		srv.UserSays(ann, ann, "long ago")
		timer := time.NewTimer(time.Hour)
		<-timer.C
	}, func(t *testing.T, a *account, _ *doorway) {
		a.srv.UserSays(ann, ann, "live")
		for _, want := range []string{"long ago", "live"} {
			if in := a.got.Next(t); in.Text != want || in.CatchUp != (want == "long ago") {
				t.Errorf("got %q, caught up: %v", in.Text, in.CatchUp)
			}
		}
	})
}

// So is what waited while the connection was broken for longer than a moment.
func TestWhatWaitedInAGapIsCaughtUp(t *testing.T) {
	for _, tt := range []struct {
		failures int
		want     bool
	}{{3, false}, {12, true}} {
		running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
			a.srv.UserSays(ann, ann, "before")
			a.got.Next(t)
			a.srv.Inject(emulator.Fault{Method: "getUpdates", Times: tt.failures, Status: 502, Body: "<html>"})
			a.srv.Cut()
			timer := time.NewTimer(time.Second)
			<-timer.C
			a.srv.UserSays(ann, ann, "meanwhile")
			if in := a.got.Next(t); in.Text != "meanwhile" || in.CatchUp != tt.want {
				t.Errorf("after %d failures: %q, caught up: %v", tt.failures, in.Text, in.CatchUp)
			}
			a.srv.UserSays(ann, ann, "live")
			if in := a.got.Next(t); in.CatchUp {
				t.Errorf("what comes now is marked: %+v", in)
			}
		})
	}
}
