package failover

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"understudy/llm"
)

func TestMessagesDoNotQuoteTheConversation(t *testing.T) {
	conversation := []llm.Message{
		llm.Text(llm.RoleUser, "my pin is 4711\n\n  and my cat is called Zoë Überall  "),
		llm.Text(llm.RoleAssistant, "I will remember that."),
		llm.Text(llm.RoleUser, "ok"),
	}
	for message, want := range map[string]string{
		"":                                       "",
		"overloaded, ok":                         "overloaded, ok",
		"cannot read: my pin is 4711":            "cannot read: […]",
		"my pin is 4711; my pin is 4711, is it?": "[…]; […], is it?",
		`bad content "and my cat is called Zoë Üb…"`:                  `bad content "[…]…"`,
		"content: I will remember that. near and my cat is called Zo": "content: […] near […]",
	} {
		if got := unquoted(message, conversation); got != want {
			t.Errorf("%q became %q, want %q", message, got, want)
		}
	}
}

func TestNoWholeLineIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := strings.TrimSpace(rapid.StringMatching(`[a-zé]{8,30}`).Draw(t, "line"))
		message := rapid.StringMatching(`[A-Z ]{0,20}`).Draw(t, "before") + line[:rapid.IntRange(0, len(line)).Draw(t, "cut")] + line
		got := unquoted(strings.ToValidUTF8(message, ""), []llm.Message{llm.Text(llm.RoleUser, line)})
		if strings.Contains(got, line) || !utf8.ValidString(got) {
			t.Fatalf("%q became %q", message, got)
		}
	})
}
