package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"understudy/commands"
	"understudy/llm"
)

// names writes what was found.
func names(list []commands.Invocation) []string {
	var out []string
	for _, inv := range list {
		out = append(out, strings.TrimSpace("/"+inv.Spec.Name+" "+inv.Args))
	}
	return out
}

func TestExtract(t *testing.T) {
	w := newWorld(t, furnish(t))
	w.models.available = []llm.ModelRef{mustRef("omega/o1")}
	reg := w.reg
	for _, x := range []struct {
		text, rest string
		found      []string
	}{
		{"a /think high b", "a b", []string{"/think high"}},
		{"a\n/think high\nb", "a\nb", []string{"/think high"}},
		{"a\r\n/think high\r\nb", "a\r\nb", []string{"/think high"}},
		{"a\n  b /T:  HIGH", "a\n  b", []string{"/think HIGH"}},
		{"a /think :high b", "a b", []string{"/think high"}},
		{"a /think\nhigh", "a /think\nhigh", nil},
		{"/think high /think low x", "x", []string{"/think high", "/think low"}},
		{"x /model gamma/g1@p2 -s y", "x y", []string{"/model gamma/g1@p2 -s"}},
		{"x /model G1 y", "x y", []string{"/model G1"}},
		{"x /model g2@2026 y", "x y", []string{"/model g2@2026"}},
		{"x /model gamma/nothing", "x", []string{"/model gamma/nothing"}}, // to be refused
		{"x /model 2 y", "x /model 2 y", nil},
		{"x /model nowhere/x", "x /model nowhere/x", nil},
		{"x /model Omega/o9 y", "x y", []string{"/model Omega/o9"}}, // a credential of it is there, none of its models is listed
		{"x /model o1 y", "x y", []string{"/model o1"}},
		{"x /queue drop:old collect the rest", "x the rest", []string{"/queue drop:old collect"}},
		{"/status\nhow are you?", "how are you?", []string{"/status"}},
		{"how /HELP are /commands you", "how are you", []string{"/help", "/commands"}},
		{"/status: how", "/status: how", nil},
		{"see /status.", "see /status.", nil},
		{"(/status)", "(/status)", nil},
		{"x /new y /stop z /cron list", "x /new y /stop z /cron list", nil},
		{"a \u2003/status\u2003b", "a \u2003\u2003b", []string{"/status"}},
		{"`a /think high` b", "`a /think high` b", nil},
		{"``a ` /think high`` b /think low", "``a ` /think high`` b", []string{"/think low"}},
		{"a ` b /think high", "a ` b", []string{"/think high"}},
		{"a ` b\n\n/think high ` c", "a ` b\n\n` c", []string{"/think high"}}, // a span ends with its paragraph
		{"a /think `high`", "a /think `high`", nil},
		{"a /think high`x`", "a /think high`x`", nil},
		{"a /status`x`", "a /status`x`", nil},
		{"a /status `x`", "a `x`", []string{"/status"}},
		{"```\n/status\n", "```\n/status\n", nil},
		{"~~~ x\n/status\n```\n/status\n~~~\n/status", "~~~ x\n/status\n```\n/status\n~~~", []string{"/status"}},
		{"> a /status\nb", "> a /status\nb", nil},
		{"a\n\n    /status", "a\n\n    /status", nil},
		{"a\n    /status", "a", []string{"/status"}}, // goes on with the paragraph
		{"/etc/model gee", "/etc/model gee", nil},
		{"https://x/think high", "https://x/think high", nil},
		{"//status", "//status", nil},
		{strings.Repeat("/status ", 10) + "x", "/status /status x", slices.Repeat([]string{"/status"}, 8)},
	} {
		rest, directives, shortcuts := reg.Extract(x.text)
		if found := names(append(directives, shortcuts...)); rest != x.rest || !slices.Equal(found, x.found) {
			t.Errorf("%q: %q %q", x.text, rest, found)
		}
	}
}

// TestExtractFindsWhatStandsInRunningText puts messages together of which it is known what is a
// directive, and what only looks like one.
func TestExtractFindsWhatStandsInRunningText(t *testing.T) {
	reg := newWorld(t, furnish(t)).reg
	text := rapid.SampledFrom([]string{
		"word", "/etc/think", "a/model", "/think", "`/think high`", "(/status)", "/nothing", "é", "`` `/status ``", "/model", "https://x/status", "5/6", "\"/status\"",
	})
	real := rapid.SampledFrom([]string{"/think high", "/verbose on", "/model gee", "/queue collect cap:3", "/status", "/whoami"})
	block := rapid.SampledFrom([]string{"```\n/status\n/think high\n```", "> /status /think low", "\n    /whoami"})
	rapid.Check(t, func(t *rapid.T) {
		var message, rest []string
		var want []string
		for range rapid.IntRange(1, 6).Draw(t, "lines") {
			if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
				b := block.Draw(t, "block")
				message, rest = append(message, b, ""), append(rest, b, "")
				continue
			}
			var all, kept []string
			for range rapid.IntRange(1, 5).Draw(t, "words") {
				if len(want) < 8 && rapid.IntRange(0, 3).Draw(t, "real") == 0 {
					d := real.Draw(t, "directive")
					all, want = append(all, d), append(want, d)
					continue
				}
				w := text.Draw(t, "word")
				all, kept = append(all, w), append(kept, w)
			}
			message = append(message, strings.Join(append(all, "."), " "))
			rest = append(rest, strings.Join(append(kept, "."), " "))
		}
		got, directives, shortcuts := reg.Extract(strings.Join(message, "\n"))
		found := names(append(directives, shortcuts...))
		slices.Sort(found)
		slices.Sort(want)
		if !slices.Equal(found, want) {
			t.Fatalf("found %q instead of %q in\n%s", found, want, strings.Join(message, "\n"))
		}
		if len(want) > 0 {
			if diff := cmp.Diff(strings.TrimSpace(strings.Join(rest, "\n")), got); diff != "" {
				t.Fatalf("of %q is left:\n%s", message, diff)
			}
		}
	})
}

func FuzzExtract(f *testing.F) {
	for _, s := range []string{
		"a /think high b", "`x` /model gee", "> /status", "```\n/status\n```\n/status", "/queue collect cap:3 /verbose on", "a /think: high\r\n/whoami",
		"/model\u00a0gee x", "\t/status", "` `` ``` /status ` ``", "/help\xff /help",
	} {
		f.Add(s)
	}
	reg := newWorld(f, furnish(f)).reg
	f.Fuzz(func(t *testing.T, text string) {
		rest, directives, shortcuts := reg.Extract(text)
		all := slices.Concat(directives, shortcuts)
		if len(all) == 0 && rest != text || len(all) > 8 || len(rest) > len(text) {
			t.Fatalf("%q, %q", rest, names(all))
		}
		for _, inv := range all {
			want := commands.Shortcut
			if slices.ContainsFunc(directives, func(d commands.Invocation) bool { return d.Spec.Name == inv.Spec.Name }) {
				want = commands.Directive
			}
			again, ok := reg.Match("/" + inv.Spec.Name + " " + inv.Args)
			if inv.Spec.Inline != want || (inv.Args == "") != (want == commands.Shortcut) || !ok || again.Args != inv.Args {
				t.Fatalf("/%s %q, by itself %q", inv.Spec.Name, inv.Args, again.Args)
			}
		}
	})
}
