package markup

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// shownSpace stands in golden files for the invisible space, which nobody could see there.
const shownSpace = "‸"

// TestGolden renders testdata/*.txtar: what a model writes, and what each platform gets.
func TestGolden(t *testing.T) {
	sections := []struct {
		name    string
		dialect Dialect
	}{{"telegram", TelegramHTML}, {"slack mrkdwn", SlackMrkdwn}, {"slack markdown_text", SlackMarkdown}, {"discord", DiscordMarkdown}, {"plain", Plain}}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, rest, found := strings.Cut(string(before), "-- markdown --\n")
			if !found {
				t.Fatal("no Markdown in it")
			}
			source, _, _ := strings.Cut(rest, "\n-- telegram --\n")
			source = strings.TrimRight(source, "\n")
			md := strings.ReplaceAll(source, shownSpace, zeroWidth)
			got := head + "-- markdown --\n" + source + "\n"
			for _, s := range sections {
				text := Render(md, s.dialect)
				check(t, s.dialect, md, Messages(md, s.dialect, Limits{}), Limits{})
				got += "\n-- " + s.name + " --\n" + strings.ReplaceAll(text, zeroWidth, shownSpace) + "\n"
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(before), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	telegram := Limits{Units: 4000, Visible: 4096}
	if got := Messages("\u200b \n", TelegramHTML, telegram); got != nil {
		t.Errorf("nothing to see gives %+v", got)
	}
	want := []Message{{Text: "a <b>b</b>", Plain: "a b", Source: "a **b**"}}
	if diff := cmp.Diff(want, Messages("a **b**\n", TelegramHTML, telegram)); diff != "" {
		t.Error(diff)
	}
	want = []Message{{Text: "[x]: https://example.com", Plain: "[x]: https://example.com", Source: "[x]: https://example.com"}}
	if diff := cmp.Diff(want, Messages("```\n```\n", Plain, telegram)); diff == "" {
		t.Error("an empty block is a link")
	}
}

// The plain text is what a platform shows that rejects the markup: it has no escapes.
func TestPlainTextHasNoEscapes(t *testing.T) {
	m := Messages(`Sure\! Step 1 \- done\. 2 < 3 & [x](https://x.y)`, TelegramHTML, Limits{Units: 4000})
	if want := "Sure! Step 1 - done. 2 < 3 & x (https://x.y)"; m[0].Plain != want {
		t.Errorf("got %q, want %q", m[0].Plain, want)
	}
}

// Where the platform counts the markup too, escapes do not push a message over its limit.
func TestEscapesCountWherePlatformsCountThem(t *testing.T) {
	md := strings.Repeat("a*b<c&d_ [x] `q`\n", 400)
	for _, d := range []Dialect{SlackMrkdwn, SlackMarkdown, DiscordMarkdown} {
		for _, m := range Messages(md, d, Limits{Units: 2000}) {
			if n := Units(m.Text); n > 2000 {
				t.Errorf("dialect %d: %d units", d, n)
			}
		}
	}
}

// Definitions of links may stand in another part of the text than the link.
func TestDefinitionsReachOverCuts(t *testing.T) {
	md := "See [the docs][d].\n\n" + strings.Repeat("word ", 100) + "\n\n[d]: https://docs.example\n"
	got := Messages(md, TelegramHTML, Limits{Units: 200})
	if want := `See <a href="https://docs.example">the docs</a>.`; !strings.HasPrefix(got[0].Text, want) {
		t.Errorf("got %q", got[0].Text)
	}
	if last := got[len(got)-1].Text; strings.Contains(last, "docs") {
		t.Errorf("the definition is shown: %q", last)
	}
}

// brittle is a style that fails.
type brittle struct{ plainStyle }

func (brittle) span(span, string) string { panic("a fault") }

// TestFaultShowsText: whatever goes wrong while a text is rendered, it is said.
func TestFaultShowsText(t *testing.T) {
	if got := renderTree("a **b** c", brittle{}, nil); got != "a **b** c" {
		t.Errorf("got %q", got)
	}
}

// Slack shows what was meant, escaped once.
func TestMrkdwnIsEscapedOnce(t *testing.T) {
	got := Render("**Done** see [doc](https://example.com/a?b=1&c=2) if a < b & c > d `x<y`", SlackMrkdwn)
	if want := "*Done* see <https://example.com/a?b=1&amp;c=2|doc> if a &lt; b &amp; c &gt; d `x&lt;y`"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Texts of providers, which are not written for people, are shown on every platform.
func TestTextOfProvidersIsShown(t *testing.T) {
	md := `unexpected <tool_use> in *messages*[3]_ {"error":{"type":"x_y"}} & more \`
	for _, d := range dialects {
		messages := Messages(md, d, Limits{Units: 2000})
		check(t, d, md, messages, Limits{Units: 2000})
		if len(messages) != 1 || !strings.Contains(messages[0].Plain, "<tool_use> in ") {
			t.Errorf("dialect %d: %+v", d, messages)
		}
	}
}

// An answer without a line break arrives in as few messages as it needs, its emoji whole.
func TestLongAnswersWithoutLineBreaks(t *testing.T) {
	for name, md := range map[string]string{
		"letters": strings.Repeat("x", 5500),
		"emoji":   strings.Repeat("x", 1998) + "👩‍👩‍👧" + strings.Repeat("y", 3400),
		"flags":   strings.Repeat("x", 1997) + strings.Repeat("🇩🇪", 800),
	} {
		messages := Messages(md, DiscordMarkdown, Limits{Units: 2000, Lines: 17})
		check(t, DiscordMarkdown, name, messages, Limits{Units: 2000})
		joined := ""
		for _, m := range messages {
			if n := Units(m.Text); n > 2000 {
				t.Errorf("%s: %d units", name, n)
			}
			joined += m.Text
		}
		if joined != md {
			t.Errorf("%s: the text changed", name)
		}
		if most := Units(md)/1990 + 1; len(messages) > most {
			t.Errorf("%s: %d messages", name, len(messages))
		}
		for _, m := range messages[1:] {
			if r := []rune(m.Text)[0]; r == '\u200d' || r >= firstFlag && r <= lastFlag && strings.HasSuffix(messages[0].Text, "🇩") {
				t.Errorf("%s: a character is cut before %q", name, r)
			}
		}
	}
}

// A table that needs several messages is a table in each of them.
func TestTablesOfSeveralMessages(t *testing.T) {
	md := "| Name | Value |\n|------|------:|\n" + strings.Repeat("| some name | 12345 |\n", 300)
	starts := map[Dialect]string{
		TelegramHTML: "<pre>Name", SlackMrkdwn: "```\nName", DiscordMarkdown: "```\nName", SlackMarkdown: "| Name | Value |\n| --- | --: |\n", Plain: "Name",
	}
	for d, start := range starts {
		l := Limits{Units: 2000, Visible: 2000}
		messages := Messages(md, d, l)
		check(t, d, md, messages, l)
		rows := 0
		for _, m := range messages {
			if !strings.HasPrefix(m.Text, start) {
				t.Errorf("dialect %d: a part starts with %.30q", d, m.Text)
			}
			rows += strings.Count(m.Text, "some name")
		}
		if rows != 300 || len(messages) < 3 {
			t.Errorf("dialect %d: %d rows in %d messages", d, rows, len(messages))
		}
	}
}
