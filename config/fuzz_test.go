package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// FuzzParse throws arbitrary bytes at the parser: it must neither panic nor hang, every failure is
// an *Error with at least one problem, and no message repeats a secret.
func FuzzParse(f *testing.F) {
	if data, err := os.ReadFile("../config.example.yaml"); err == nil {
		f.Add(data)
	}
	f.Add([]byte(house))
	for _, s := range []string{
		"a: &x [*x]", "a: &a {<<: *a}", "a: &a\n  b: *a\n", "<<: {agents: {}}", "? [a]\n: b\n", "agents: !!map {}", "%YAML 1.2\n---\n", "- - - a", "agents: |\n  x", "&a : *a", "{a:1}", "auth: {order: {openai: [openai:a:b]}}",
		"gateway: {token: {source: env, id: TOKEN}}", "shutdown: {drain: 1d}", "agents: {defaults: {timeoutSeconds: 0x10}}", "\xef\xbb\xbfagents: {}", "a: 'x\ny'", "a: \"\\u00e4\"", "...\n", "channels: {telegram: {accounts: {a: *x}}}",
	} {
		f.Add([]byte(s))
	}
	opts := Options{
		Env:        env("TOKEN", "geheim-0123456789"),
		readSecret: func(string) ([]byte, error) { return []byte("geheim-0123456789"), nil },
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, ws, err := parse("bot.yaml", data, opts)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || len(e.Problems) == 0 || c != nil {
				t.Fatalf("error %T %v", err, err)
			}
			if strings.Contains(err.Error(), "geheim") && !strings.Contains(string(data), "geheim") {
				t.Fatalf("a secret in the error: %v", err)
			}
			return
		}
		for _, w := range ws {
			if strings.Contains(w.String(), "geheim") && !strings.Contains(string(data), "geheim") {
				t.Fatalf("a secret in a warning: %v", w)
			}
		}
		if c.Agent("").ID == "" || c.Rules().Validate() != nil {
			t.Fatalf("an unusable configuration: %+v", c)
		}
		if out, err := c.Redacted(); err != nil || (strings.Contains(string(out), "geheim") && !strings.Contains(string(data), "geheim")) {
			t.Fatalf("redacted: %v %s", err, out)
		}
	})
}

func TestSelfReferencesEnd(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+", ", 9) + "x]\n"
	}
	for _, text := range []string{
		"agents: &a {defaults: *a}",
		"agents: &a {<<: *a, list: []}",
		bomb + "auth: {order: {openai: *j}}",
		"commands: {ownerAllowFrom: &l [*l]}",
	} {
		if got := problems(t, text); len(got) == 0 {
			t.Errorf("%.60q was accepted", text)
		}
	}
}

func TestMergeKeysAndAliases(t *testing.T) {
	c := must(t, `
agents:
  defaults:
    model: &lead {primary: openai/gpt-5.5, fallbacks: [zai/glm-5]}
  list:
    - {id: a, model: {<<: *lead, fallbacks: [anthropic/x]}}
    - {id: b, model: *lead}
`)
	if got := c.Agent("a").Models; got.Primary != ref("openai/gpt-5.5") || len(got.Fallbacks) != 1 || got.Fallbacks[0] != ref("anthropic/x") {
		t.Errorf("merged: %+v", got)
	}
	if got := c.Agent("b").Models; got.Fallbacks[0] != ref("zai/glm-5") {
		t.Errorf("alias: %+v", got)
	}
}
