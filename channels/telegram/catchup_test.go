package telegram

import (
	"strings"
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

// How long a message waited is told by Telegram's clock: one of ours that is off makes the account neither
// deaf nor answer what is of yesterday. The operator is told.
func TestAWrongClockMakesNothingOldOrNew(t *testing.T) {
	for _, offset := range []time.Duration{-2 * time.Hour, 26 * time.Hour} {
		prepare := func(srv *emulator.Server, _ *Config, _ *Deps) {
			srv.UserSays(ann, ann, "long ago")
			timer := time.NewTimer(24 * time.Hour)
			<-timer.C
			srv.UserSays(ann, ann, "just now")
		}
		running(t, emulator.Config{Offset: offset}, prepare, func(t *testing.T, a *account) {
			a.srv.UserSays(ann, ann, "live")
			for _, want := range []string{"long ago", "just now", "live"} {
				age := time.Duration(0)
				if want == "long ago" {
					age = 24 * time.Hour
				}
				in := a.got.Next(t)
				if in.Text != want || in.CatchUp != (age > 0) || (time.Since(in.At)-age).Abs() > time.Minute {
					t.Errorf("%v ahead: got %q of %v ago, caught up: %v", -offset, in.Text, time.Since(in.At), in.CatchUp)
				}
			}
			if n := strings.Count(a.log.String(), "the clock of this machine is not the platform's"); n != 1 {
				t.Errorf("%v ahead: told %d times", -offset, n)
			}
		})
	}
}
