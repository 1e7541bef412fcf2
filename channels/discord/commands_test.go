package discord

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"

	emulator "understudy/internal/emulate/discord"
)

func TestCommandsAreRegisteredOnce(t *testing.T) {
	store := &memory{}
	cmds := []channels.CommandInfo{
		{Name: "status", Description: "how it is\n going"},
		{Name: "tts", Description: ""},
		{Name: "voice", Description: "twice"},
		{Name: "Not a name", Description: "x"},
		{Name: "think", Description: strings.Repeat("x", 200), Options: []channels.CommandOption{
			{Name: "note"}, {Name: "level", Required: true, Choices: []string{"off", "high"}, Complete: true},
		}},
	}
	for _, guilds := range [][]string{nil, {"500", "501"}} {
		running(t, emulator.Config{}, func(c *Config, d *Deps) { c.DevGuildIDs, d.Hash = guilds, store }, func(t *testing.T, a *account) {
			for range 2 {
				if err := a.RegisterCommands(t.Context(), cmds); err != nil {
					t.Fatal(err)
				}
			}
			calls := a.srv.Calls("PUT", "/commands")
			if len(calls) != max(len(guilds), 1) {
				t.Errorf("registered %d times", len(calls))
			}
			scope := ""
			if len(guilds) > 0 {
				scope = guilds[0]
			}
			const want = `[{"name":"status","description":"how it is going","type":1},{"name":"voice","description":"voice","type":1},{"name":"think",`
			if got := a.srv.Commands(scope); !strings.HasPrefix(got, want) {
				t.Errorf("registered %s", got)
			}
		})
	}
	running(t, emulator.Config{}, func(c *Config, d *Deps) { c.Commands.Native = new(bool) }, func(t *testing.T, a *account) {
		if err := a.RegisterCommands(t.Context(), cmds); err != nil || len(a.srv.Calls("PUT", "/commands")) != 0 {
			t.Errorf("registered although that is off: %v", err)
		}
	})
}

// Commands can be registered before the gateway has said who the bot is.
func TestCommandsWithoutAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		b := newBot(t, srv, nil)
		defer b.Close()
		if err := b.RegisterCommands(t.Context(), []channels.CommandInfo{{Name: "help", Description: "x"}}); err != nil || srv.Commands("") == "" {
			t.Errorf("%v", err)
		}
		srv.Inject(emulator.Fault{Path: "/commands", Status: 429, RetryAfter: time.Hour})
		if err := b.RegisterCommands(t.Context(), nil); err == nil {
			t.Error("a failure is not told")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if v, _ := verdictOf(second(b.Send(ctx, say(direct, "x")))); v != channels.Retry {
			t.Errorf("verdict %d", v)
		}
	})
}

func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := emulator.New(emulator.Config{NoMessageContent: true})
		defer srv.Close()
		b := newBot(t, srv, func(c *Config, _ *Deps) { c.Intents.GuildMembers = true })
		defer b.Close()
		found, err := b.Probe(t.Context())
		if err != nil || len(found) != 5 {
			t.Fatalf("%+v, %v", found, err)
		}
		if !strings.Contains(found[1].Fix, "developer portal") || found[2].Fix != "" || !strings.Contains(found[3].Fix, "permissions=309237763136") || found[4].Fix != "" {
			t.Errorf("found %+v", found)
		}
		srv.Inject(emulator.Fault{Path: "/users/@me", Status: 401})
		if _, err := b.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "botToken") {
			t.Errorf("got %v", err)
		}
	})
}
