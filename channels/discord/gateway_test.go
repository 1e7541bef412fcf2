package discord

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"

	emulator "understudy/internal/emulate/discord"
)

func TestMessagesKeepTheirOrder(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		const n = 200
		for i := range n {
			a.srv.UserSays(general, ann, fmt.Sprint(i))
		}
		for i := range n {
			if in := a.got.Next(t); in.Text != fmt.Sprint(i) {
				t.Fatalf("message %d reads %q", i, in.Text)
			}
		}
	})
}

// An event with parts that nobody knows is still a message, and one that is none does no harm.
func TestUnknownPayloads(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.UserSays(general, ann, "odd", emulator.WithField("components", []any{map[string]any{"type": 99, "id": "x", "accessory": 7}}),
			emulator.WithField("embeds", "none"), emulator.WithField("poll", []int{1}))
		if in := a.got.Next(t); in.Text != "odd" || in.Sender.ID != ann {
			t.Errorf("got %+v", in)
		}
		a.srv.Dispatch("MESSAGE_CREATE", map[string]any{"id": "7"})
		a.srv.Dispatch("MESSAGE_CREATE", map[string]any{"id": 7, "author": []int{}, "guild_id": guildID})
		a.srv.Dispatch("MESSAGE_CREATE", nil)
		a.srv.Dispatch("GUILD_CREATE", map[string]any{"id": guildID, "channels": []any{nil, 3}, "roles": "x"})
		a.srv.Dispatch("INTERACTION_CREATE", map[string]any{"id": "8", "token": "x", "type": 2})
		a.srv.Dispatch("INTERACTION_CREATE", map[string]any{"id": "9", "token": "x", "type": 3, "user": map[string]any{"id": ann}, "data": "none"})
		a.srv.Dispatch("SOMETHING_NEW", map[string]any{"x": 1})
		a.srv.UserSays(general, ann, "next")
		if in := a.got.Next(t); in.Text != "next" {
			t.Errorf("got %+v", in)
		}
		if n := len(a.srv.Connects()); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// A frame that cannot be read ends the connection, not the bot; nothing is lost.
func TestUnreadableFrames(t *testing.T) {
	for _, frame := range []string{"null", "{", `"x"`, `{"d":1}`, `[]`} {
		running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
			a.srv.Raw(frame)
			synctest.Wait()
			a.srv.UserSays(general, ann, "still here?")
			if in := a.got.Next(t); in.Text != "still here?" {
				t.Errorf("after %s: %+v", frame, in)
			}
			if c := a.srv.Connects(); len(c) != 2 || c[1].Op != 6 {
				t.Errorf("after %s: %+v", frame, c)
			}
		})
	}
}

// What a cut connection loses comes again when the session is resumed, once, at the address for that.
func TestResumesAfterACut(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.UserSays(general, ann, "one")
		a.got.Next(t)
		a.srv.Lose(2)
		a.srv.UserSays(general, ann, "two")
		a.srv.UserSays(general, ann, "three")
		a.srv.Cut()
		synctest.Wait()
		if got := a.got.State(); got != channels.Down {
			t.Errorf("state %q", got)
		}
		a.srv.UserSays(general, ann, "four")
		for _, want := range []string{"two", "three", "four"} {
			if in := a.got.Next(t); in.Text != want || in.CatchUp {
				t.Errorf("got %q, want %q", in.Text, want)
			}
		}
		c := a.srv.Connects()
		if len(c) != 2 || c[1].Op != 6 || !c[1].Resume {
			t.Errorf("connections %+v", c)
		}
		if d := c[1].At.Sub(c[0].At); d < time.Second || d > 3*time.Second {
			t.Errorf("came back after %v", d)
		}
	})
}

// The reconnects that Discord asks for keep the session; the bot never says 1000 before the end.
func TestReconnectKeepsTheSession(t *testing.T) {
	for name, ask := range map[string]func(*emulator.Server){
		"request to reconnect": (*emulator.Server).Reconnect,
		"invalid but resumable": func(s *emulator.Server) {
			s.Invalidate(true)
		},
		"unknown error": func(s *emulator.Server) { s.CloseWith(4000) },
		"going away":    func(s *emulator.Server) { s.CloseWith(1001) },
	} {
		t.Run(name, func(t *testing.T) {
			running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
				ask(a.srv)
				synctest.Wait()
				a.srv.UserSays(general, ann, "meanwhile")
				if in := a.got.Next(t); in.Text != "meanwhile" {
					t.Errorf("got %q", in.Text)
				}
				c := a.srv.Connects()
				if len(c) != 2 || c[1].Op != 6 {
					t.Fatalf("connections %+v", c)
				}
				if c[0].Code == 1000 || c[0].Code == 1001 {
					t.Errorf("the bot closed with %d", c[0].Code)
				}
			})
		})
	}
}

// A half-open connection is given up two heartbeats after the last sign of life, once.
func TestZombieConnection(t *testing.T) {
	const beat = 40 * time.Second
	running(t, emulator.Config{Heartbeat: beat}, nil, func(t *testing.T, a *account) {
		pass(3 * beat)
		a.srv.Deafen()
		deaf := time.Now()
		a.srv.UserSays(general, ann, "hello?")
		if in := a.got.Next(t); in.Text != "hello?" {
			t.Errorf("got %q", in.Text)
		}
		if d := time.Since(deaf); d > 2*beat+3*time.Second {
			t.Errorf("noticed after %v", d)
		}
		pass(5 * beat)
		c := a.srv.Connects()
		if len(c) != 2 || c[1].Op != 6 || !c[1].Resume {
			t.Fatalf("connections %+v", c)
		}
		if c[0].Code != closeResumable {
			t.Errorf("closed with %d", c[0].Code)
		}
		if n := a.got.Pending(); n != 0 {
			t.Errorf("%d messages came twice", n)
		}
	})
}

// After an invalid session the numbers are those of the new one.
func TestInvalidSessionStartsAfresh(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		for range 5 {
			a.srv.UserSays(general, ann, "before")
			a.got.Next(t)
		}
		a.srv.Invalidate(false)
		pass(10 * time.Second)
		for _, text := range []string{"a", "b", "c"} {
			a.srv.UserSays(general, ann, text)
			if in := a.got.Next(t); in.Text != text {
				t.Errorf("got %q", in.Text)
			}
		}
		a.srv.Cut()
		synctest.Wait()
		a.srv.UserSays(general, ann, "d")
		if in := a.got.Next(t); in.Text != "d" {
			t.Errorf("got %q", in.Text)
		}
		c := a.srv.Connects()
		if len(c) != 3 || c[1].Op != 2 || c[2].Op != 6 {
			t.Fatalf("connections %+v", c)
		}
		// READY, one GUILD_CREATE, three messages
		if c[2].Session != "session-2" || c[2].Seq != 5 {
			t.Errorf("resumed %s at %d", c[2].Session, c[2].Seq)
		}
	})
}

// Sessions that cannot be resumed are not asked for again.
func TestSessionOutOfStep(t *testing.T) {
	for _, code := range []int{4007, 4009} {
		running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
			a.srv.CloseWith(code)
			pass(20 * time.Second)
			c := a.srv.Connects()
			if len(c) != 2 || c[1].Op != 2 || a.got.State() != channels.Connected {
				t.Errorf("after %d: %+v", code, c)
			}
		})
	}
}

// What no reconnecting helps against stops the account, in words for the operator.
func TestFatalCloseCodes(t *testing.T) {
	for code, want := range map[int]string{4004: "token", 4010: "shard", 4011: "servers", 4012: "version", 4013: "intents", 4014: "Message Content Intent"} {
		synctest.Test(t, func(t *testing.T) {
			srv := newServer(emulator.Config{})
			defer srv.Close()
			srv.InjectGateway(emulator.GatewayFault{Close: code})
			a := start(t, srv, nil)
			err := <-a.done
			a.done <- nil
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), srv.Token()) {
				t.Errorf("%d: %v", code, err)
			}
			if s := a.got.Statuses(); s[len(s)-1].State != channels.Stopped || s[len(s)-1].Detail != err.Error() {
				t.Errorf("%d: status %+v", code, s[len(s)-1])
			}
			_ = a.end(t)
			if n := len(srv.Connects()); n != 1 {
				t.Errorf("%d: %d connections", code, n)
			}
		})
	}
}

func TestRefusedIntentsAndTokens(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg    emulator.Config
		change func(*Config, *Deps)
		want   string // "" = it connects
	}{
		"content not allowed":                {emulator.Config{NoMessageContent: true}, nil, "Message Content Intent"},
		"content not asked for":              {emulator.Config{NoMessageContent: true}, func(c *Config, _ *Deps) { c.Intents.MessageContent = new(bool) }, ""},
		"members not allowed":                {emulator.Config{NoGuildMembers: true}, func(c *Config, _ *Deps) { c.Intents.GuildMembers = true }, "Server Members Intent"},
		"another bot's token":                {emulator.Config{Token: emulator.TokenOf("77")}, func(c *Config, _ *Deps) { c.BotToken = otherToken }, "token"},
		"a token with the word Bot in front": {emulator.Config{}, func(c *Config, _ *Deps) { c.BotToken = prefixed(c.BotToken) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newServer(tt.cfg)
				defer srv.Close()
				a := start(t, srv, tt.change)
				synctest.Wait()
				if tt.want == "" {
					if a.got.State() != channels.Connected {
						t.Errorf("state %q", a.got.State())
					}
				} else if s := a.got.Statuses(); s[len(s)-1].State != channels.Stopped || !strings.Contains(s[len(s)-1].Detail, tt.want) {
					t.Errorf("status %+v", s[len(s)-1])
				}
				_ = a.end(t)
			})
		})
	}
}

// A gateway that takes the connection and then says nothing, or the wrong thing, does not hold up.
func TestConnectingIsBounded(t *testing.T) {
	for name, fault := range map[string]emulator.GatewayFault{
		"no hello":                     {NoHello: true},
		"no ready":                     {NoReady: true},
		"reconnect in place of ready":  {Reconnect: true},
		"invalid in place of ready":    {Invalid: true},
		"null in place of ready":       {Raw: "null"},
		"unreadable ready":             {Raw: `{"op":0,"s":1,"t":"READY","d":{"session_id":7}}`},
		"try again in place of ready":  {Invalid: true, Resumable: true},
		"rate limited in place of all": {Close: 4008},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newServer(emulator.Config{})
				defer srv.Close()
				srv.InjectGateway(fault)
				a := start(t, srv, nil)
				began := time.Now()
				a.await(t, time.Minute, srv.Online)
				if d := time.Since(began); d > openLimit+10*time.Second {
					t.Errorf("connected after %v", d)
				}
				if err := a.end(t); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The end of Run does not wait for a silent server.
func TestEndsWhileConnecting(t *testing.T) {
	for name, fault := range map[string]emulator.GatewayFault{"no hello": {NoHello: true}, "no ready": {NoReady: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newServer(emulator.Config{})
				defer srv.Close()
				srv.InjectGateway(fault)
				a := start(t, srv, nil)
				synctest.Wait()
				began := time.Now()
				if err := a.end(t); err != nil || time.Since(began) > 2*time.Second {
					t.Errorf("ended after %v with %v", time.Since(began), err)
				}
			})
		})
	}
}

func TestGoodbyeAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		a := start(t, srv, nil)
		synctest.Wait()
		if err := a.Run(t.Context(), a.got); !errors.Is(err, ErrRunning) {
			t.Errorf("a second Run: %v", err)
		}
		_ = a.end(t)
		synctest.Wait()
		if c := srv.Connects(); c[0].Code != 1000 {
			t.Errorf("closed with %d", c[0].Code)
		}
	})
}

// A gateway that drops every session is not asked for a thousand of them.
func TestSessionsAreRationed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		for range 3000 {
			srv.InjectGateway(emulator.GatewayFault{Invalid: true})
		}
		a := start(t, srv, nil)
		pass(20 * time.Hour)
		n := len(srv.Connects())
		if n > mostIdentify || n < 500 {
			t.Errorf("%d sessions in 20 hours", n)
		}
		for i, c := range srv.Connects()[1:] {
			if d := c.At.Sub(srv.Connects()[i].At); d < identifyEvery {
				t.Fatalf("two sessions within %v", d)
			}
		}
		_ = a.end(t)
	})
}

func TestNoSessionsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		srv.Inject(emulator.Fault{Path: "/gateway/bot", Status: 200, Body: `{"url":"ws://x","session_start_limit":{"remaining":0,"reset_after":3600000}}`})
		a := start(t, srv, nil)
		pass(59 * time.Minute)
		if n := len(srv.Calls("", "/gateway/bot")); n != 1 || a.got.State() != channels.Down {
			t.Errorf("%d questions, state %q", n, a.got.State())
		}
		pass(2 * time.Minute)
		if a.got.State() != channels.Connected {
			t.Errorf("state %q", a.got.State())
		}
		_ = a.end(t)
	})
}

// While messages cannot be stored, what waits is bounded; nothing is lost or out of order, and no
// more than so much is in memory.
func TestFullQueueGivesTheConnectionUp(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.got.Refuse(errors.New("disk full"))
		const n = mostWaiting + 200
		for i := range n {
			a.srv.UserSays(general, ann, fmt.Sprint(i))
		}
		pass(30 * time.Second)
		if got := a.got.State(); got != channels.Down {
			t.Errorf("state %q", got)
		}
		a.got.Refuse(nil)
		for i := range n {
			if in := a.got.Next(t); in.Text != fmt.Sprint(i) {
				t.Fatalf("message %d reads %q", i, in.Text)
			}
		}
		a.await(t, time.Minute, a.srv.Online)
	})
}

func TestHeartbeatOnRequest(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.AskHeartbeat()
		pass(10 * time.Minute)
		if c := a.srv.Connects(); len(c) != 1 {
			t.Errorf("connections %+v", c)
		}
	})
}

func TestDuplicatesHaveOneKey(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.Duplicate(1)
		a.srv.UserSays(general, ann, "twice")
		one, two := a.got.Next(t), a.got.Next(t)
		if one.EventKey != two.EventKey || one.EventKey != "discord:"+one.ID {
			t.Errorf("keys %q and %q", one.EventKey, two.EventKey)
		}
	})
}

// The address for resuming comes from outside: the token goes to Discord's own hosts only.
func TestGatewayHosts(t *testing.T) {
	real := newBot(t, emulatorWithoutServer(), func(c *Config, _ *Deps) { c.APIRoot = "" })
	for address, want := range map[string]bool{
		"wss://gateway.discord.gg": true, "wss://gateway-us-east1-b.discord.gg": true, "ws://gateway.discord.gg": false,
		"wss://discord.gg.example.com": false, "wss://example.com": false, "": false, "://": false, "https://gateway.discord.gg": false,
	} {
		if got := real.trusted(address); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 2 * time.Second, 2: 4 * time.Second, 5: 32 * time.Second, 6: longestWait, 60: longestWait} {
		for range 50 {
			if d := backoff(failures); d < want/2 || d > want {
				t.Errorf("after %d failures %v", failures, d)
			}
		}
	}
}

// A failure of the network while the bot is started, and later, is told and passes.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		srv.Inject(emulator.Fault{Path: "/gateway/bot", Times: 3, Drop: true})
		srv.Inject(emulator.Fault{Path: "/gateway/bot", Status: 503, Body: "<html>"})
		a := start(t, srv, nil)
		synctest.Wait()
		if got := a.got.State(); got != channels.Down {
			t.Errorf("state %q", got)
		}
		a.await(t, 2*time.Minute, srv.Online)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := a.Send(ctx, say(direct, "here I am")); err != nil {
			t.Error(err)
		}
		_ = a.end(t)
	})
}

// The same over real sockets, with the connections the product uses.
func TestOverLoopback(t *testing.T) {
	srv := newServer(emulator.Config{})
	defer srv.Close()
	root, err := srv.Listen()
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, srv, func(c *Config, d *Deps) { c.APIRoot, d.Transport, d.Dial = root, nil, nil })
	a.await(t, time.Minute, srv.Online)
	srv.UserSays(general, ann, srv.Mention()+" hello", emulator.WithFile("a.txt", "text/plain", []byte("file")))
	in := a.got.Next(t)
	if data, err := a.Fetch(t.Context(), in.Attachments[0], 100); err != nil || string(data) != "file" {
		t.Errorf("fetched %q, %v", data, err)
	}
	if _, err := a.Send(t.Context(), say(in.Address, "answer")); err != nil || len(srv.Sent(general)) != 1 {
		t.Errorf("sent %v", err)
	}
	if err := a.end(t); err != nil {
		t.Error(err)
	}
}
