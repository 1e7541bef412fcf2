package drill

import (
	"fmt"
	"strings"
)

// agent is the agent that every script talks to.
const agent = "main"

// roots are the base addresses of the providers.
type roots struct{ models, alpha, telegram string }

// settings writes a whole bot.yaml: the sections of text, and ours for those that it leaves out.
func settings(text string, r roots) string {
	var b strings.Builder
	b.WriteString(text)
	own := map[string]bool{}
	for line := range strings.Lines(text) {
		if key, _, ok := strings.Cut(line, ":"); ok && key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz") == "" {
			own[key] = true
		}
	}
	for _, s := range []struct{ key, text string }{
		{"models", fmt.Sprintf(`models:
  providers:
    alpha: {api: openai-chat, baseUrl: %[2]s/v1, apiKey: "${ALPHA_KEY}"}
    beta: {api: anthropic-messages, baseUrl: %[1]s}
    gamma: {api: openai-responses, baseUrl: %[1]s/v1}
    pair: {api: openai-chat, baseUrl: %[1]s/v1}
    spare: {api: openai-chat, baseUrl: %[1]s/v1}
`, r.models, r.alpha)},
		{"channels", fmt.Sprintf(`channels:
  telegram:
    apiRoot: %s
    dmPolicy: allowlist
    allowFrom: ["1001", "1002"]
    groupAllowFrom: ["1001", "1002"]
    groups: {"-1001": {}, "-2001": {}}
`, r.telegram)},
		{"commands", "commands:\n  ownerAllowFrom: [\"telegram:1001\"]\n"},
		{"gateway", "gateway:\n  token: ${BOT_GATEWAY_TOKEN}\n"},
	} {
		if !own[s.key] {
			b.WriteString("\n" + s.text)
		}
	}
	return b.String()
}

func environment(state string) func(string) (string, bool) {
	env := map[string]string{
		"OPENCLAW_STATE_DIR": state,
		"ALPHA_KEY":          alphaKey,
		"BOT_GATEWAY_TOKEN":  gatewayToken,
		"TELEGRAM_BOT_TOKEN": botToken,
	}
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}
