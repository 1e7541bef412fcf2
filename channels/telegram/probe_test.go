package telegram

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"

	emulator "understudy/internal/emulate/telegram"
)

func TestProbe(t *testing.T) {
	silent := func(c *Config) { c.RequireMention = new(bool) }
	tests := []struct {
		name   string
		server emulator.Config
		state  func(*emulator.Server)
		config func(*Config)
		want   []string // "what" or "what -> fix"
	}{
		{"well", emulator.Config{}, nil, nil, []string{"the token is accepted: @understudy_bot (id 110201543)"}},
		{"refused", emulator.Config{}, (*emulator.Server).Revoke, nil, []string{"telegram does not accept the bot token (401 Unauthorized): check botToken -> take the token"}},
		{"privacy", emulator.Config{}, nil, silent, []string{"the token", "privacy mode is on -> in @BotFather: /setprivacy"}},
		{"no privacy", emulator.Config{ReadsAll: true}, nil, silent, []string{"the token"}},
		{
			"groups",
			emulator.Config{},
			func(s *emulator.Server) {
				s.AddChat(emulator.Chat{ID: -1001, Type: "supergroup"})
				s.AddChat(emulator.Chat{ID: -1002, Type: "supergroup", Muted: true})
				s.AddChat(emulator.Chat{ID: -1003, Type: "group"})
				s.Block(-1003, "bot was kicked from the group chat")
			},
			func(c *Config) {
				c.Groups = map[string]Group{"*": {}, "-1001": {}, "-1002": {}, "-1003": {}, "-1004": {}}
			},
			[]string{"the token", "the bot may not write in the group -1002 -> allow it", "the bot is not in the group -1003 -> add it there", "the bot is not in the group -1004 -> add it there", "the bot is in 1 configured groups"},
		},
		{"groups are off", emulator.Config{}, nil, func(c *Config) { silent(c); c.GroupPolicy = "disabled" }, []string{"the token"}},
		{
			"a webhook while polling",
			emulator.Config{},
			func(s *emulator.Server) { s.SetWebhook("https://other.test/secret-path") }, nil,
			[]string{"the token", "a webhook is set at other.test, but this account polls -> stop the other program"},
		},
		{"no webhook yet", emulator.Config{}, nil, withWebhook, []string{"the token", "no webhook is set -> start the bot"}},
		{"the webhook", emulator.Config{}, func(s *emulator.Server) { s.SetWebhook(hookURL) }, withWebhook, []string{"the token", "the webhook is set at bot.test"}},
		{
			"another webhook",
			emulator.Config{},
			func(s *emulator.Server) { s.SetWebhook("https://other.test") }, withWebhook,
			[]string{"the token", "the webhook is set at other.test instead of webhookUrl -> stop"},
		},
		{
			"a webhook that is not reached",
			emulator.Config{},
			func(s *emulator.Server) {
				s.Inject(emulator.Fault{Method: "getWebhookInfo", Body: `{"ok":true,"result":{"url":"` + hookURL + `","pending_update_count":3,"last_error_date":9,"last_error_message":"Connection refused ` + hookSecret + `"}}`})
			},
			withWebhook,
			[]string{"the token", "the webhook is set", "Telegram cannot deliver 3 updates: Connection refused *** -> see that webhookUrl"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newServer(tt.server)
				defer srv.Close()
				if tt.state != nil {
					tt.state(srv)
				}
				b := newBot(t, srv, func(c *Config, _ *Deps) {
					if tt.config != nil {
						tt.config(c)
					}
				})
				defer b.Close()
				found, err := b.Probe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for i, f := range found {
					line := f.What
					if f.Fix != "" {
						line += " -> " + f.Fix
					}
					if strings.Contains(line, "secret") && !strings.Contains(line, "webhookSecret") {
						t.Errorf("a secret is shown: %s", line)
					}
					if i < len(tt.want) {
						what, fix, _ := strings.Cut(tt.want[i], " -> ")
						if strings.HasPrefix(f.What, what) && strings.HasPrefix(f.Fix, fix) && (fix == "") == (f.Fix == "") {
							line = tt.want[i]
						}
					}
					got = append(got, line)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				if n := len(srv.Calls("getUpdates")); n != 0 {
					t.Error("a probe ends the poll of a running bot")
				}
			})
		})
	}
}

func TestProbeComparesCommands(t *testing.T) {
	cmds := []channels.CommandInfo{{Name: "status", Description: "how it is"}, {Name: "model", Description: "choose"}, {Name: "stop", Description: "stop"}}
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		probe := func(cmds []channels.CommandInfo, want string, fix bool) {
			t.Helper()
			found, err := a.ProbeCommands(t.Context(), cmds)
			if err != nil || len(found) != 1 || !strings.Contains(found[0].What, want) || (found[0].Fix != "") != fix {
				t.Errorf("found %+v, %v", found, err)
			}
		}
		probe(cmds, "empty yet", false)
		if err := a.RegisterCommands(t.Context(), cmds); err != nil {
			t.Fatal(err)
		}
		probe(cmds, "is set", false)
		probe(cmds[1:], "is not the bot's", true)
	})
}

func TestProbeThatReachesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{})
		defer srv.Close()
		srv.Inject(emulator.Fault{Method: "getMe", Drop: true})
		b := newBot(t, srv, nil)
		defer b.Close()
		if _, err := b.Probe(t.Context()); err == nil || strings.Contains(err.Error(), srv.Token()) {
			t.Errorf("got %v", err)
		}
	})
}
