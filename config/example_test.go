package config

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/session"
)

// tokens are the variables that config.example.yaml refers to.
var tokens = []string{
	"ANTHROPIC_API_KEY", "sk-ant-example",
	"SLACK_BOT_TOKEN", "xoxb-1-example", "SLACK_APP_TOKEN", "xapp-1-example", "SLACK_OPS_BOT_TOKEN", "xoxb-2-example", "SLACK_OPS_APP_TOKEN", "xapp-2-example",
	"DISCORD_BOT_TOKEN", "MTIzNDU2.example.one", "DISCORD_OPS_TOKEN", "MTIzNDU3.example.two",
	"TELEGRAM_BOT_TOKEN", "1:example", "TELEGRAM_OPS_TOKEN", "2:example", "TICKETS_TOKEN", "tickets-example",
	"LOG_LEVEL", "warn", "SAY_LEVEL", "quiet",
}

func example(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// keysBelow lists every key of a section type; {} stands for free keys, lists are transparent.
func keysBelow(t reflect.Type, at string, out map[string]bool) {
	t = deref(t)
	switch {
	case t.Kind() == reflect.Slice:
		keysBelow(t.Elem(), at, out)
	case t.Kind() == reflect.Map:
		keysBelow(t.Elem(), at+".{}", out)
	case t.Kind() == reflect.Struct && t.PkgPath() != "understudy/internal/secret":
		for _, f := range fieldsOf(t) {
			key := strings.TrimPrefix(at+"."+f.key, ".")
			out[key] = true
			keysBelow(f.typ, key, out)
		}
	}
}

func TestExampleLoadsAndDocumentsEveryKey(t *testing.T) {
	data := example(t)
	opts := Options{Env: env(tokens...), readSecret: func(string) ([]byte, error) { return []byte("sk-house"), nil }}
	node, err := Tree("config.example.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	d := newDecoder("config.example.yaml", opts)
	var decoded Config
	d.document(node, &decoded)
	want := map[string]bool{}
	keysBelow(reflect.TypeFor[File](), "", want)
	free := regexp.MustCompile(`^(agents\.defaults\.models|auth\.(profiles|order|providers|cooldowns\.billingBackoffHoursByProvider)|models\.providers(\.\{\}\.headers)?|` +
		`channels\.(slack\.channels|discord\.guilds(\.\{\}\.channels)?|telegram\.groups|[a-z]+\.accounts)|` +
		`session\.(identityLinks|resetByType|resetByChannel)|messages\.inbound\.byChannel|agents\.defaults\.heartbeat\.byChannel|accessGroups|commands\.allowFrom|` +
		`queue\.(byChannel|debounceMsByChannel)|mcp\.servers(\.\{\}\.(env|headers))?|tts\.providers(\.\{\}\.env)?|stt\.env)(\.[^.\["{]+|\["[^"]*"\])`)
	index := regexp.MustCompile(`\[\d+\]`)
	accounts := regexp.MustCompile(`^channels\.[a-z]+\.accounts\.\{\}\.|^agents\.list\.heartbeat\.|^(channels\.[a-z]+|agents\.list)\.tts\.`) // the same keys as the block, or as the section
	for path := range d.at {
		path = index.ReplaceAllString(path, "")
		for range 3 {
			path = free.ReplaceAllString(path, "$1.{}")
		}
		delete(want, path)
	}
	for path := range want {
		if !accounts.MatchString(path) {
			t.Errorf("config.example.yaml does not mention %s", path)
		}
	}
	c, ws, err := ParseNode("config.example.yaml", node, opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(ws) > 0 || len(c.Unavailable) > 0 {
		t.Errorf("warnings %v, unavailable %v", ws, c.Unavailable)
	}
	for name, n := range map[string]int{"slack": len(c.SlackAccounts()), "discord": len(c.DiscordAccounts()), "telegram": len(c.TelegramAccounts())} {
		if n != 2 {
			t.Errorf("%d accounts of %s", n, name)
		}
	}
}

func TestExampleIsHonestAboutDefaults(t *testing.T) {
	c := must(t, string(example(t)), tokens...)
	empty := must(t, "channels: {slack: {botToken: xoxb-1, appToken: xapp-1}, discord: {botToken: MTIzNDU2.x.y}, telegram: {botToken: '1:x'}}")
	slack, slackDefault := c.SlackAccounts()[DefaultAccount], empty.SlackAccounts()[DefaultAccount]
	discord, discordDefault := c.DiscordAccounts()[DefaultAccount], empty.DiscordAccounts()[DefaultAccount]
	for name, pair := range map[string][2]any{
		"rotations": {c.Rules().OverloadedRotations, empty.Rules().OverloadedRotations},
		"billing":   {c.Rules().BillingMax, empty.Rules().BillingMax},
		"timeout":   {c.Agent("").Timeout, empty.Agent("").Timeout},
		"heartbeat": {c.Agent("").Heartbeat.Every, empty.Agent("").Heartbeat.Every},
		"promises":  {c.Agent("").Commitments, empty.Agent("").Commitments},
		"drain":     {c.Shutdown, empty.Shutdown},
		"logging":   {c.Logging, empty.Logging},
		"notices":   {c.Notices, empty.Notices},
		"listen":    {c.Gateway.Listen, empty.Gateway.Listen},
		"catch-up":  {c.Messages.CatchUp, empty.Messages.CatchUp},
		"debounce":  {c.Messages.Inbound.DebounceMs, empty.Messages.Inbound.DebounceMs},
		"history":   {c.Messages.GroupChat.HistoryLimit, empty.Messages.GroupChat.HistoryLimit},
		"ack":       {c.Messages.AckReactionScope, empty.Messages.AckReactionScope},
		"slack": {
			[]any{slack.Mode, slack.APIRoot, slack.WebhookPath, slack.ReplyToMode, slack.Streaming, slack.TextChunkLimit, slack.MediaMaxMB, slack.HistoryLimit, slack.Thread, slack.UnfurlLinks, slack.Commands, slack.SlashCommand, slack.CatchUp, slack.ImplicitMentions, slack.DM, slack.AllowBots},
			[]any{slackDefault.Mode, slackDefault.APIRoot, slackDefault.WebhookPath, slackDefault.ReplyToMode, slackDefault.Streaming, slackDefault.TextChunkLimit, slackDefault.MediaMaxMB, slackDefault.HistoryLimit, slackDefault.Thread, slackDefault.UnfurlLinks, slackDefault.Commands, slackDefault.SlashCommand, slackDefault.CatchUp, slackDefault.ImplicitMentions, slackDefault.DM, slackDefault.AllowBots},
		},
		"discord": {
			[]any{discord.APIRoot, discord.ReplyToMode, discord.Streaming, discord.TextChunkLimit, discord.MaxLinesPerMessage, discord.MediaMaxMB, discord.HistoryLimit, discord.SuppressEmbeds, discord.Commands, discord.Intents, discord.CatchUp, discord.ImplicitMentions, discord.AllowBots},
			[]any{discordDefault.APIRoot, discordDefault.ReplyToMode, discordDefault.Streaming, discordDefault.TextChunkLimit, discordDefault.MaxLinesPerMessage, discordDefault.MediaMaxMB, discordDefault.HistoryLimit, discordDefault.SuppressEmbeds, discordDefault.Commands, discordDefault.Intents, discordDefault.CatchUp, discordDefault.ImplicitMentions, discordDefault.AllowBots},
		},
		"dmScope":   {c.Session.DMScope, empty.Session.DMScope},
		"queue":     {c.Queue.For("web", session.Queue{}), empty.Queue.For("web", session.Queue{})},
		"manners":   {[]any{c.Messages.TypingMode, c.Messages.BotLoopProtection, c.Manners("slack", ""), c.Manners("discord", ""), c.Manners("telegram", ""), c.Messages.ResponsePrefix, c.Messages.ErrorPolicy, c.Messages.ContextVisibility, c.Commands.VerboseInGroups}, []any{empty.Messages.TypingMode, empty.Messages.BotLoopProtection, empty.Manners("slack", ""), empty.Manners("discord", ""), empty.Manners("telegram", ""), empty.Messages.ResponsePrefix, empty.Messages.ErrorPolicy, empty.Messages.ContextVisibility, empty.Commands.VerboseInGroups}},
		"reserve":   {c.Compaction.ReserveTokens, empty.Compaction.ReserveTokens},
		"recent":    {c.Compaction.KeepRecentTokens, empty.Compaction.KeepRecentTokens},
		"parallel":  {c.Agents.Defaults.MaxConcurrent, empty.Agents.Defaults.MaxConcurrent},
		"chunk":     {c.TelegramAccounts()[DefaultAccount].TextChunkLimit, empty.TelegramAccounts()[DefaultAccount].TextChunkLimit},
		"reply":     {c.TelegramAccounts()[DefaultAccount].ReplyToMode, empty.TelegramAccounts()[DefaultAccount].ReplyToMode},
		"streaming": {c.TelegramAccounts()[DefaultAccount].Streaming, empty.TelegramAccounts()[DefaultAccount].Streaming},
		"media":     {c.TelegramAccounts()[DefaultAccount].MediaMaxMB, empty.TelegramAccounts()[DefaultAccount].MediaMaxMB},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: the example says %v, the default is %v", name, pair[0], pair[1])
		}
	}
}

func TestStarterIsValidAsWrittenAndUncommented(t *testing.T) {
	var b bytes.Buffer
	if err := Init(&b); err != nil {
		t.Fatal(err)
	}
	if ws := warnings(t, b.String()); len(ws) > 0 {
		t.Errorf("warnings: %v", ws)
	}
	full := regexp.MustCompile(`(?m)^(\s*)#([^ ]| {2,}[a-z])`).ReplaceAllString(b.String(), "$1$2")
	c := must(t, full, tokens...)
	if got := c.Agent("").Models.Primary.String(); got != "anthropic/claude-opus-4-8" {
		t.Errorf("uncommented: primary %q in\n%s", got, full)
	}
	if len(c.TelegramAccounts()) != 1 {
		t.Error("uncommented: no Telegram account")
	}
}

func TestRedactedShowsNoSecretAndReadsBack(t *testing.T) {
	opts := Options{Env: env(append(slices.Clone(tokens), "PROXY", "http://user:pa55@proxy.example.com:1")...), readSecret: func(string) ([]byte, error) { return []byte("sk-house"), nil }}
	text := strings.Replace(string(example(t)), `proxy: ""`, `proxy: ${PROXY}`, 1)
	c, _, err := parse("bot.yaml", []byte(text), opts)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(c.Secrets(), must(t, "gateway: {token: pa55pa55pa55pa55}").Secrets()...) {
		if bytes.Contains(out, []byte(s.Reveal())) {
			t.Errorf("%q is shown in\n%s", s.Reveal(), out)
		}
	}
	if bytes.Contains(out, []byte("pa55")) {
		t.Errorf("a password in a URL is shown in\n%s", out)
	}
	back := newDecoder("shown", opts)
	node, err := Tree("shown", out)
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	var again Config
	back.document(node, &again)
	if len(back.problems) > 0 {
		t.Errorf("what is shown cannot be read: %v\n%s", back.problems, out)
	}
	auth := c.Auth
	again.Auth.Providers, auth.Providers = nil, nil // their secrets are hidden
	if !reflect.DeepEqual(again.Agents, c.Agents) || !reflect.DeepEqual(again.Auth, auth) || again.Shutdown != c.Shutdown {
		t.Errorf("what is shown means something else:\n%s", out)
	}
}

func TestSchemaNamesEveryKey(t *testing.T) {
	raw, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	at := func(keys ...string) (v any) {
		v = s
		for _, k := range keys {
			m, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("nothing at %v", keys)
			}
			v = m[k]
		}
		return v
	}
	if got := at("properties", "logging", "properties", "level", "enum"); !reflect.DeepEqual(got, []any{"debug", "info", "warn", "error"}) {
		t.Errorf("levels %v", got)
	}
	if at("additionalProperties") != false || at("properties", "agents", "additionalProperties") != false {
		t.Error("unknown keys are allowed")
	}
	for _, path := range [][]string{
		{"properties", "models", "properties", "providers", "additionalProperties", "properties", "baseUrl"},
		{"properties", "channels", "properties", "telegram", "properties", "accounts", "additionalProperties", "properties", "botToken"},
		{"properties", "auth", "properties", "cooldowns", "properties", "overloadedBackoffMs"},
	} {
		if at(path...) == nil {
			t.Errorf("nothing at %v", path)
		}
	}
}

// TestManualExplainsTheMessagesKeys: every key of the section stands in its table.
func TestManualExplainsTheMessagesKeys(t *testing.T) {
	manual, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(manual), "**For all channels**")
	table, _, end := strings.Cut(table, "\n## ")
	if !ok || !end {
		t.Fatal("the table is gone")
	}
	keys := map[string]bool{}
	keysBelow(reflect.TypeFor[Messages](), "", keys)
	keysBelow(reflect.TypeFor[Manners](), "", keys)
	for key := range keys {
		parts := strings.Split(strings.TrimSuffix(key, ".{}"), ".")
		if name := parts[len(parts)-1]; !strings.Contains(table, "`"+name+"`") && !strings.Contains(table, "`"+key+"`") && !strings.Contains(table, "`"+key+".") {
			t.Errorf("docs/configuration.md does not explain %s", key)
		}
	}
}
