package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/channels/channelstest"

	emulator "understudy/internal/emulate/slack"
)

// settle lets virtual time pass until everything is quiet.
func settle(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// opened returns when connections were asked for, from the start of the test.
func opened(srv *emulator.Server, since time.Time) []time.Duration {
	var out []time.Duration
	for _, c := range srv.Calls("apps.connections.open") {
		out = append(out, c.At.Sub(since))
	}
	return out
}

func TestAcknowledgesOnlyWhatIsStored(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.sink.Refuse(errors.New("disk full"))
		r.srv.UserSays(dm, ann, "important")
		first := r.sink.Refused(r.T)
		settle(2 * time.Second)
		if r.srv.Pending() != 1 {
			r.Error("acknowledged though it is not stored")
		}
		r.sink.Refuse(nil)
		again := r.sink.Next(r.T)
		if again.EventKey != first.EventKey || again.Text != "important" {
			r.Errorf("got %+v", again)
		}
		settle(10 * time.Minute)
		r.none()
		d := r.srv.Deliveries()
		if len(d) != 2 || d[1].Acked.IsZero() || d[1].Reason != "timeout" || r.srv.Lost() != 0 {
			r.Errorf("deliveries %+v, lost %d", d, r.srv.Lost())
		}
	})
}

// TestRepeatedDeliveriesAreOneMessage: acknowledgements that are lost, events that are told under many
// ids, and the two events of a mention.
func TestRepeatedDeliveriesAreOneMessage(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.srv.UserSays(general, ann, "<@"+botID+"> hi") // a message and an app_mention
		in := r.sink.Next(r.T)
		if !in.Mentioned || in.Text != "hi" {
			r.Errorf("got %+v", in)
		}
		for range 5 {
			settle(time.Minute)
			r.srv.TellAgain(general, in.ID)
		}
		settle(time.Minute)
		for _, d := range r.srv.Deliveries() {
			r.srv.Redeliver(d.Envelope)
			if took := d.Acked.Sub(d.At); d.Acked.IsZero() || took >= 3*time.Second {
				r.Errorf("delivery %+v is acknowledged after %v", d, took)
			}
		}
		settle(time.Minute)
		r.none()
	})
}

// TestDuplicatesAreKnownAfterARestart: only the keys are left then.
func TestDuplicatesAreKnownAfterARestart(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		ts := r.srv.UserSays(general, ann, "<@"+botID+"> hi")
		first := r.sink.Next(r.T)
		r.stop()
		<-r.done
		other := newBot(r.T, r.srv, nil)
		ctx, stop := context.WithCancel(r.Context())
		go func() { r.done <- other.Run(ctx, r.sink) }()
		defer stop()
		synctest.Wait()
		r.srv.TellAgain(general, ts)
		again := r.sink.Next(r.T)
		if first.EventKey == again.EventKey || len(first.AltKeys) != 1 || fmt.Sprint(first.AltKeys) != fmt.Sprint(again.AltKeys) {
			r.Errorf("keys %q %q, after the restart %q %q", first.EventKey, first.AltKeys, again.EventKey, again.AltKeys)
		}
		want := "slack:T0TEAM001:" + general + ":" + ts
		if first.AltKeys[0] != want || !strings.HasPrefix(first.EventKey, "slack:T0TEAM001:Ev") {
			r.Errorf("keys %q %q", first.EventKey, first.AltKeys)
		}
		stop()
		other.Close()
	})
}

// TestFirstSeenRetryIsAnswered: what was sent while nobody listened arrives as a retry, or late.
func TestFirstSeenRetryIsAnswered(t *testing.T) {
	inBubble(t, setup{idle: true}, func(r *rig) {
		<-r.done
		r.srv.UserSays(dm, ann, "while you were out")
		settle(40 * time.Second)
		ctx, stop := context.WithCancel(r.Context())
		go func() { r.done <- r.bot.Run(ctx, r.sink) }()
		if in := r.sink.Next(r.T); in.Text != "while you were out" {
			r.Errorf("got %+v", in)
		}
		settle(10 * time.Minute)
		r.none()
		stop()
	})
}

// TestNothingIsLostToWhatCannotBeDecoded: the library gives up on a whole envelope for one block; a
// message has to arrive all the same, and everything has to be acknowledged.
func TestNothingIsLostToWhatCannotBeDecoded(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.srv.UserSays(dm, ann, "odd block", emulator.With(func(e map[string]any) {
			e["blocks"] = []any{map[string]any{"type": "section", "text": 7, "accessory": []any{}}, "no block"}
		}))
		r.srv.UserSays(dm, ann, "odd fields", emulator.With(func(e map[string]any) {
			e["blocks"], e["edited"], e["attachments"], e["reactions"] = 5, true, "x", map[string]any{}
			e["files"] = []any{1, map[string]any{"id": "F1", "name": "a.txt", "size": "big"}}
		}))
		r.srv.PushRaw("events_api", `{"type":"event_callback","team_id":"T0TEAM001","event_id":"Ev1","event":{"type":"brand_new_event","x":1}}`)
		r.srv.PushRaw("events_api", `{"type":"event_callback","event":null}`)
		r.srv.PushRaw("events_api", `[]`)
		r.srv.PushRaw("events_api", `"text"`)
		r.srv.PushRaw("brand_new_envelope", `{"a":1}`)
		r.srv.PushRaw("slash_commands", `[1]`)
		r.srv.PushRaw("slash_commands", `{"command":7}`)
		r.srv.PushRaw("interactive", `{"type":"view_submission","view":7}`)
		r.srv.PushRaw("interactive", `{"type":"block_actions","actions":7}`)
		r.srv.WriteFrame(`{"type":"hello"}`)
		r.srv.WriteFrame(`not json`)
		r.srv.WriteFrame(`{}`)
		r.srv.WriteFrame(`null`)
		r.srv.UserSays(dm, ann, "last")
		for _, want := range []string{"odd block", "odd fields", "last"} {
			in := r.sink.Next(r.T)
			if in.Text != want || in.Sender.ID != ann {
				r.Errorf("got %+v, want %q", in, want)
			}
			if want == "odd fields" && len(in.Attachments) != 1 {
				r.Errorf("attachments %+v", in.Attachments)
			}
		}
		settle(10 * time.Minute)
		r.none()
		if r.srv.Pending() != 0 || r.srv.Lost() != 0 {
			r.Errorf("%d pending, %d lost", r.srv.Pending(), r.srv.Lost())
		}
		for _, d := range r.srv.Deliveries() {
			if d.Attempt > 0 {
				r.Errorf("delivered again: %+v", d)
			}
		}
	})
}

// TestSilentSocketIsReplaced: a connection that is dead without a word is noticed within 40 seconds.
func TestSilentSocketIsReplaced(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		settle(time.Minute)
		r.srv.Silence()
		began := time.Now()
		r.srv.UserSays(dm, ann, "into the void")
		in := r.sink.Next(r.T)
		if in.Text != "into the void" {
			r.Errorf("got %+v", in)
		}
		calls := r.srv.Calls("apps.connections.open")
		if len(calls) != 2 {
			r.Fatalf("%d connections were asked for", len(calls))
		}
		if after := calls[1].At.Sub(began); after < 20*time.Second || after > 40*time.Second {
			r.Errorf("asked for a new connection after %v", after)
		}
		settle(10 * time.Minute)
		r.none()
		if r.srv.Sockets() != 1 {
			r.Errorf("%d connections", r.srv.Sockets())
		}
	})
}

// TestQuietSocketIsKept: pings are enough for a connection to live.
func TestQuietSocketIsKept(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		settle(time.Hour)
		if n := len(r.srv.Calls("apps.connections.open")); n != 1 {
			r.Errorf("%d connections in an hour", n)
		}
	})
}

func TestRenewsConnectionsWhenSlackAsks(t *testing.T) {
	for _, reason := range []string{"warning", "refresh_requested"} {
		t.Run(reason, func(t *testing.T) {
			inBubble(t, setup{}, func(r *rig) {
				settle(time.Minute)
				began := time.Now()
				r.srv.Disconnect(reason)
				synctest.Wait()
				calls := r.srv.Calls("apps.connections.open")
				if len(calls) != 2 || calls[1].At != began || r.sink.State() != channels.Connected {
					r.Errorf("connections at %v, state %q", opened(r.srv, began), r.sink.State())
				}
				r.srv.UserSays(dm, ann, "still there?")
				r.sink.Next(r.T)
			})
		})
	}
}

func TestBacksOffWhileSlackIsAway(t *testing.T) {
	began := time.Now()
	faults := func(srv *emulator.Server) {
		began = time.Now()
		srv.Inject(emulator.Fault{Method: "apps.connections.open", Status: 503, Body: "<html>", Times: 6})
	}
	inBubble(t, setup{before: faults}, func(r *rig) {
		settle(10 * time.Minute)
		want := []time.Duration{0, 2, 6, 14, 30, 60, 90}
		got := opened(r.srv, began)
		if len(got) != len(want) {
			r.Fatalf("connections at %v", got)
		}
		for i := range want {
			if got[i] != want[i]*time.Second {
				r.Errorf("attempt %d after %v, want %ds", i, got[i], want[i])
			}
		}
		if r.sink.State() != channels.Connected {
			r.Errorf("state %q", r.sink.State())
		}
	})
}

// TestDoesNotHammer: connections that end as soon as they stand are made ever more seldom.
func TestDoesNotHammer(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		deadline := time.Now().Add(5 * time.Minute)
		for time.Now().Before(deadline) {
			r.srv.DropSockets()
			settle(time.Second)
		}
		if n := len(r.srv.Calls("apps.connections.open")); n < 8 || n > 16 {
			r.Errorf("%d connections in five minutes", n)
		}
	})
}

func TestWaitsAsLongAsSlackSays(t *testing.T) {
	began := time.Now()
	faults := func(srv *emulator.Server) {
		began = time.Now()
		srv.Inject(emulator.Fault{Method: "apps.connections.open", RetryAfter: 45 * time.Second})
		srv.Inject(emulator.Fault{Method: "auth.test", RetryAfter: 20 * time.Second})
	}
	inBubble(t, setup{before: faults}, func(r *rig) {
		settle(5 * time.Minute)
		if got := opened(r.srv, began); len(got) != 2 || got[0] != 20*time.Second || got[1] != 65*time.Second {
			r.Errorf("connections at %v", got)
		}
	})
}

func TestHangingCallsEnd(t *testing.T) {
	faults := func(srv *emulator.Server) {
		srv.Inject(emulator.Fault{Method: "auth.test", Hang: true})
		srv.Inject(emulator.Fault{Method: "apps.connections.open", Hang: true})
	}
	inBubble(t, setup{before: faults}, func(r *rig) {
		settle(5 * time.Minute)
		if r.sink.State() != channels.Connected {
			r.Errorf("state %q", r.sink.State())
		}
	})
}

// TestPermanentRefusalsStop: with words for the operator, and without another attempt.
func TestPermanentRefusalsStop(t *testing.T) {
	for _, c := range []struct{ method, code, want string }{
		{"auth.test", "invalid_auth", "check botToken"},
		{"auth.test", "not_authed", "check botToken"},
		{"auth.test", "token_revoked", "check botToken"},
		{"auth.test", "account_inactive", "install it in the workspace again"},
		{"auth.test", "not_allowed_token_type", "another kind of token"},
		{"apps.connections.open", "invalid_auth", "check appToken"},
		{"apps.connections.open", "token_revoked", "check appToken"},
		{"apps.connections.open", "account_inactive", "install it"},
		{"apps.connections.open", "not_allowed_token_type", "check appToken"},
		{"apps.connections.open", "missing_scope", "needs connections:write"},
	} {
		t.Run(c.method+" "+c.code, func(t *testing.T) {
			faults := func(srv *emulator.Server) {
				srv.Inject(emulator.Fault{Method: c.method, Error: c.code, Needed: "connections:write", Times: -1})
			}
			inBubble(t, setup{before: faults}, func(r *rig) {
				err := <-r.done
				r.done <- nil
				if err == nil || !strings.Contains(err.Error(), c.want) {
					r.Errorf("ended with %v, want %q", err, c.want)
				}
				all := r.sink.Statuses()
				if last := all[len(all)-1]; last.State != channels.Stopped || last.Detail != err.Error() {
					r.Errorf("status %+v", last)
				}
				if n := len(r.srv.Calls(c.method)); n != 1 {
					r.Errorf("%d attempts", n)
				}
			})
		})
	}
}

func TestTokensOfTwoAppsAreRefused(t *testing.T) {
	inBubble(t, setup{server: emulator.Config{SocketApp: "A0OTHER001"}}, func(r *rig) {
		err := <-r.done
		r.done <- nil
		if err == nil || !strings.Contains(err.Error(), "A0OTHER001") || !strings.Contains(err.Error(), "A0APP00001") {
			r.Errorf("ended with %v", err)
		}
	})
}

func TestConnectsWithoutTheScopeToCompareApps(t *testing.T) {
	inBubble(t, setup{server: emulator.Config{Scopes: []string{"chat:write"}}}, func(r *rig) {
		if r.sink.State() != channels.Connected {
			r.Errorf("state %q", r.sink.State())
		}
	})
}

func TestRunsOnce(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		if err := r.bot.Run(r.Context(), r.sink); !errors.Is(err, ErrRunning) {
			r.Errorf("got %v", err)
		}
	})
}

// TestNoSecretIsTold goes through failures of every kind and looks at everything that is told.
func TestNoSecretIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		srv := newServer(emulator.Config{})
		cfg := srv.Config()
		b := newBot(t, srv, func(_ *Config, d *Deps) {
			d.Log = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		echo := "the tokens are " + cfg.BotToken + " and " + cfg.AppToken
		srv.Inject(emulator.Fault{Method: "auth.test", Error: "missing_scope", Needed: echo, Times: 0})
		srv.Inject(emulator.Fault{Method: "bots.info", Body: echo, Status: 500})
		srv.Inject(emulator.Fault{Method: "apps.connections.open", Error: echo})
		srv.Inject(emulator.Fault{Method: "apps.connections.open", Drop: true})
		srv.Inject(emulator.Fault{Method: "respond", Drop: true})
		srv.Inject(emulator.Fault{Method: "chat.postMessage", Error: echo})
		sink := channelstest.NewRecorder()
		var told []string
		for range 2 { // the first one ends with the scope
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- b.Run(ctx, sink) }()
			settle(time.Minute)
			srv.Slash(general, ann, "/bot", "status")
			settle(time.Second)
			if sink.Pending() > 0 {
				in := sink.Next(t)
				_, err := b.Send(t.Context(), replyTo(in, "all is well"))
				told = append(told, fmt.Sprint(err))
			}
			_, err := b.Send(t.Context(), channels.Piece{To: direct, Text: "x"})
			told = append(told, fmt.Sprint(err))
			stop()
			told = append(told, fmt.Sprint(<-done))
		}
		b.Close()
		srv.Close()
		for _, s := range sink.Statuses() {
			told = append(told, s.Detail)
		}
		all := strings.Join(told, "\n") + logs.String()
		for _, secret := range []string{cfg.BotToken, cfg.AppToken, cfg.SigningSecret, "/respond/", "ticket-"} {
			if strings.Contains(all, secret) {
				t.Errorf("%q is told in:\n%s", secret, all)
			}
		}
		if !strings.Contains(all, "lacks a scope") || !strings.Contains(all, "unknown_error") {
			t.Errorf("the failures did not happen:\n%s", all)
		}
	})
}

// TestWorksOverARealNetwork uses the product's own transport and dialer.
func TestWorksOverARealNetwork(t *testing.T) {
	srv := newServer(emulator.Config{})
	defer srv.Close()
	root, err := srv.Listen()
	if err != nil {
		t.Fatal(err)
	}
	b := newBot(t, srv, func(c *Config, d *Deps) { c.APIRoot, d.Transport, d.Dial = root, nil, nil })
	defer b.Close()
	sink := channelstest.NewRecorder()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx, sink) }()
	srv.UserSays(dm, ann, "hello")
	in := sink.Next(t)
	if _, err := b.Send(ctx, channels.Piece{To: in.Address, Text: "hi"}); err != nil || in.Text != "hello" {
		t.Errorf("got %+v, %v", in, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
