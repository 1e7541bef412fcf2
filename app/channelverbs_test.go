package app_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/app"
	"understudy/internal/emulate/discord"
	"understudy/internal/emulate/slack"
	"understudy/internal/emulate/telegram"
	"understudy/internal/sqlite"
)

var update = flag.Bool("update", false, "write docs/smoke.md")

// run runs a verb and returns its exit code and what it printed.
func run(f func(std app.Std) int) (int, string) {
	var out bytes.Buffer
	return f(app.Std{Out: &out, Err: &out}), out.String()
}

// beside is a bot with a control socket, and the options of the verbs that run beside it.
func beside(t *testing.T, config string, change func(*app.Options)) (verbs app.Options, state string) {
	t.Helper()
	served(t, config, func(o *app.Options) {
		o.NoControl, o.Listen = false, "off"
		change(o)
		verbs = *o
	})
	state, _ = verbs.Env("OPENCLAW_STATE_DIR")
	return verbs, state
}

func TestVerbsOfChannels(t *testing.T) {
	s := slack.New(slack.Config{})
	defer s.Close()
	s.AddChannel(slack.Channel{ID: slackDM, Kind: "im", With: slackAlice})
	s.AddChannel(slack.Channel{ID: slackRoom, Kind: "channel", Name: "ops"})
	o, state := beside(t, fmt.Sprintf("channels: {slack: {botToken: %s, appToken: %s, apiRoot: %q, replyToMode: 'off', accounts: {spare: {botToken: '${NOWHERE}', appToken: xapp-2}}}}\n",
		s.Config().BotToken, s.Config().AppToken, slack.Root), func(o *app.Options) { o.Slack, o.Dial = s.Transport, s.Dial })
	ctx := t.Context()
	waitFor(t, s.WaitFor, func() bool { return s.Sockets() == 1 })

	s.UserSays(slackDM, slackAlice, "who are you?")
	waitFor(t, s.WaitFor, func() bool { return len(s.Sent(slackDM)) == 1 })
	_, rest, _ := strings.Cut(s.Sent(slackDM)[0].Text, "Pairing code: ")
	code, _, _ := strings.Cut(rest, "\n")
	if exit, text := run(func(std app.Std) int { return app.PairingApprove(ctx, o, std, "slack", "default", code, true) }); exit != app.ExitOK || !strings.Contains(text, "They are told.") {
		t.Errorf("approve --notify: exit %d, %s", exit, text)
	}
	waitFor(t, s.WaitFor, func() bool {
		sent := s.Sent(slackDM)
		return len(sent) == 2 && strings.Contains(sent[1].Text, "You are approved")
	})

	m := app.OutgoingMessage{Channel: "slack", To: slackRoom, Text: "**deployed**"}
	if exit, text := run(func(std app.Std) int { return app.MessageSend(ctx, o, std, m, nil) }); exit != app.ExitOK {
		t.Errorf("send: exit %d, %s", exit, text)
	}
	waitFor(t, s.WaitFor, func() bool { return len(s.Sent(slackRoom)) == 1 })
	m.To = "somewhere"
	if exit, text := run(func(std app.Std) int { return app.MessageSend(ctx, o, std, m, nil) }); exit != app.ExitFailed || !strings.Contains(text, "begins with C, D or G") {
		t.Errorf("send to nowhere: exit %d, %s", exit, text)
	}

	exit, text := run(func(std app.Std) int { return app.ChannelsStatus(ctx, o, std, true, true) })
	var list []app.AccountReport
	if err := json.Unmarshal([]byte(text), &list); err != nil || exit != app.ExitOK || len(list) != 2 {
		t.Fatalf("status: exit %d, %v, %s", exit, err, text)
	}
	if r := list[0]; r.Account != "default" || r.State != "connected" || r.Events == 0 || r.Sent == 0 || r.Failed != 0 || r.LastEvent.IsZero() || len(r.Findings) == 0 {
		t.Errorf("status: %+v", r)
	}
	if r := list[1]; r.Account != "spare" || r.State != "unavailable" || !strings.Contains(r.Detail, "NOWHERE") {
		t.Errorf("an account without its secret: %+v", r)
	}
	if exit, text := run(func(std app.Std) int { return app.ChannelsStatus(ctx, o, std, false, false) }); exit != app.ExitOK || !strings.Contains(text, "slack    default  connected") {
		t.Errorf("status: exit %d, %s", exit, text)
	}
	revive(t, o, s, state)
}

// revive gives a message up and has it answered after all.
func revive(t *testing.T, o app.Options, s *slack.Server, state string) {
	t.Helper()
	ctx := t.Context()
	if exit, text := run(func(std app.Std) int { return app.DeadLetters(ctx, o, std, false) }); exit != app.ExitOK || !strings.Contains(text, "No message was given up.") {
		t.Errorf("dead letters: exit %d, %s", exit, text)
	}
	s.UserSays(slackDM, slackAlice, "/whoami@nobody is this a message?")
	waitFor(t, s.WaitFor, func() bool { return len(s.Sent(slackDM)) == 3 })
	db, err := sqlite.Open(ctx, filepath.Join(state, "state", "bot.sqlite"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var id int64
	err = db.Write(ctx, func(tx *sqlite.Tx) error {
		return tx.QueryRowContext(ctx, "UPDATE inbound SET state = 'dead', error = 'it ends the program' WHERE id = (SELECT max(id) FROM inbound) RETURNING id").Scan(&id)
	})
	if err != nil {
		t.Fatal(err)
	}
	if exit, text := run(func(std app.Std) int { return app.DeadLetters(ctx, o, std, false) }); exit != app.ExitOK || !strings.Contains(text, "is this a message?") {
		t.Errorf("dead letters: exit %d, %s", exit, text)
	}
	if exit, text := run(func(std app.Std) int { return app.Doctor(ctx, o, std, app.DoctorOptions{}) }); !strings.Contains(text, "1 messages: given up after several failures") {
		t.Errorf("doctor: exit %d, %s", exit, text)
	}
	if exit, text := run(func(std app.Std) int { return app.Resubmit(ctx, o, std, id) }); exit != app.ExitOK {
		t.Errorf("resubmit: exit %d, %s", exit, text)
	}
	waitFor(t, s.WaitFor, func() bool { return len(s.Sent(slackDM)) == 4 })
	if exit, text := run(func(std app.Std) int { return app.Resubmit(ctx, o, std, id) }); exit != app.ExitFailed || !strings.Contains(text, "no message of this number was given up") {
		t.Errorf("resubmit twice: exit %d, %s", exit, text)
	}
}

func TestVerbsOfChannelsWithoutABot(t *testing.T) {
	dir := t.TempDir()
	o := app.Options{Env: func(name string) (string, bool) { return dir, name == "OPENCLAW_STATE_DIR" }}
	for name, f := range map[string]func(std app.Std) int{
		"status": func(std app.Std) int { return app.ChannelsStatus(t.Context(), o, std, false, false) },
		"send": func(std app.Std) int {
			return app.MessageSend(t.Context(), o, std, app.OutgoingMessage{Channel: "slack", To: "C1", Text: "x"}, nil)
		},
	} {
		if exit, text := run(f); exit != app.ExitFailed || !strings.Contains(text, "start one with: bot run") {
			t.Errorf("%s: exit %d, %s", name, exit, text)
		}
	}
	if exit, text := run(func(std app.Std) int { return app.DeadLetters(t.Context(), o, std, true) }); exit != app.ExitOK || strings.TrimSpace(text) != "[]" {
		t.Errorf("dead letters: exit %d, %s", exit, text)
	}
	if exit, text := run(func(std app.Std) int { return app.Resubmit(t.Context(), o, std, 7) }); exit != app.ExitFailed || !strings.Contains(text, "no message of this number was given up") {
		t.Errorf("resubmit: exit %d, %s", exit, text)
	}
	if exit, _ := run(func(std app.Std) int {
		return app.MessageSend(t.Context(), o, std, app.OutgoingMessage{Channel: "slack", To: "C1"}, nil)
	}); exit != app.ExitUsage {
		t.Errorf("nothing to say: exit %d", exit)
	}
}

// threePlatforms writes a configuration for one account of each platform, and returns the options that reach them.
func threePlatforms(t *testing.T) (app.Options, *slack.Server, *discord.Server, *telegram.Server) {
	t.Helper()
	s, d, tg := slack.New(slack.Config{}), discord.New(discord.Config{}), telegram.New(telegram.Config{})
	t.Cleanup(func() { s.Close(); d.Close(); tg.Close() })
	s.AddChannel(slack.Channel{ID: slackRoom, Kind: "channel", Name: "ops"})
	d.AddGuild(discord.Guild{ID: discordGuild})
	d.AddChannel(discord.Channel{ID: discordRoom, Guild: discordGuild, Type: discord.TextChannel})
	tg.AddChat(telegram.Chat{ID: alice, Type: "private"})
	dir := t.TempDir()
	file := filepath.Join(dir, "bot.yaml")
	text := offlineModels + fmt.Sprintf("channels:\n  slack: {botToken: %s, appToken: %s, apiRoot: %q}\n  discord: {botToken: %s, apiRoot: %q}\n  telegram: {botToken: %q, apiRoot: %q}\n",
		s.Config().BotToken, s.Config().AppToken, slack.Root, d.Token(), discord.Root, tg.Token(), telegram.Root)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := app.Options{
		Config: file, Slack: s.Transport, Discord: d.Transport, Telegram: tg.Transport,
		Env: func(name string) (string, bool) {
			return filepath.Join(dir, "state"), name == "OPENCLAW_STATE_DIR"
		},
	}
	return o, s, d, tg
}

func TestSmoke(t *testing.T) {
	o, s, d, tg := threePlatforms(t)
	for channel, to := range map[string]string{"slack": slackRoom, "discord": discordRoom, "telegram": fmt.Sprint(alice)} {
		o.Dial = s.Dial
		exit, text := run(func(std app.Std) int {
			return app.Smoke(t.Context(), o, std, app.SmokeOptions{Channel: channel, To: to})
		})
		if exit != app.ExitOK || strings.Contains(text, "FAILED") || strings.Count(text, "- [ ]") != 12 {
			t.Errorf("%s: exit %d\n%s", channel, exit, text)
		}
		for _, step := range []string{"opens", "probe", "send", "edit", "reaction", "typing", "delete"} {
			if !strings.Contains(text, "  ok      "+step+"\n") {
				t.Errorf("%s: %s was not tried:\n%s", channel, step, text)
			}
		}
	}
	gone := func(texts ...string) bool {
		for _, text := range texts {
			if strings.Contains(text, "edited") {
				return false
			}
		}
		return true
	}
	for _, m := range s.Sent(slackRoom) {
		if !gone(m.Text) {
			t.Errorf("slack: left behind: %q", m.Text)
		}
	}
	for _, m := range d.Sent(discordRoom) {
		if !gone(m.Content) {
			t.Errorf("discord: left behind: %q", m.Content)
		}
	}
	for _, m := range tg.Sent(alice) {
		if !gone(m.Text) && !m.Deleted {
			t.Errorf("telegram: left behind: %q", m.Text)
		}
	}
	if exit, text := run(func(std app.Std) int {
		return app.Smoke(t.Context(), o, std, app.SmokeOptions{Channel: "slack", Account: "nobody"})
	}); exit != app.ExitFailed || !strings.Contains(text, "no such account is configured: nobody of slack") {
		t.Errorf("an account that is not there: exit %d, %s", exit, text)
	}
}

func TestDoctorAsksThePlatforms(t *testing.T) {
	o, s, d, tg := threePlatforms(t)
	o.Dial = s.Dial
	exit, text := run(func(std app.Std) int { return app.Doctor(t.Context(), o, std, app.DoctorOptions{Probe: true}) })
	for _, want := range []string{"ok     channels: slack default: ", "ok     channels: discord default: ", "ok     channels: telegram default: "} {
		if !strings.Contains(text, want) {
			t.Errorf("exit %d, no %q in\n%s", exit, want, text)
		}
	}
	s.Revoke()
	exit, text = run(func(std app.Std) int { return app.Doctor(t.Context(), o, std, app.DoctorOptions{Probe: true}) })
	if exit != app.ExitFailed || !strings.Contains(text, "error  channels: slack default: ") {
		t.Errorf("a revoked token: exit %d\n%s", exit, text)
	}
	for _, token := range []string{s.Config().BotToken, s.Config().AppToken, d.Token(), tg.Token()} {
		if strings.Contains(text, token) {
			t.Error("doctor shows a token")
		}
	}
}

// TestSmokePage checks that docs/smoke.md is what the verb prints.
func TestSmokePage(t *testing.T) {
	const path = "../docs/smoke.md"
	if *update {
		if err := os.WriteFile(path, []byte(app.SmokeDoc()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != app.SmokeDoc() {
		t.Errorf("docs/smoke.md is stale (%v); run: go test ./app -run TestSmokePage -update", err)
	}
}
