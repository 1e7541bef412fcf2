package markup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	emulator "understudy/internal/emulate/telegram"
)

func TestRender(t *testing.T) {
	tests := []struct {
		name, in               string
		telegram, slack, plain string
		discord, slackMarkdown string // "" = as in
	}{
		{
			name: "emphasis", in: "**bold** *it* _it_ ~~gone~~ `x<y` ***both***",
			telegram: "<b>bold</b> <i>it</i> <i>it</i> <s>gone</s> <code>x&lt;y</code> <i><b>both</b></i>",
			slack:    "*bold* _it_ _it_ ~gone~ `x&lt;y` _*both*_",
			plain:    "bold it it gone x<y both",
		},
		{
			name: "link and escaping", in: "**Done** see [doc](https://example.com/a?b=1&c=2) if a < b & c > d `x<y`",
			telegram: `<b>Done</b> see <a href="https://example.com/a?b=1&amp;c=2">doc</a> if a &lt; b &amp; c &gt; d <code>x&lt;y</code>`,
			slack:    "*Done* see <https://example.com/a?b=1&amp;c=2|doc> if a &lt; b &amp; c &gt; d `x&lt;y`",
			plain:    "Done see doc (https://example.com/a?b=1&c=2) if a < b & c > d x<y",
		},
		{
			name: "bare and other links", in: "https://a.b/c_d_e <https://x.y> [x](javascript:alert(1)) [mail](mailto:a@b.c) ![pic](https://p.q/r.png)",
			telegram: `<a href="https://a.b/c_d_e">https://a.b/c_d_e</a> <a href="https://x.y">https://x.y</a> x (javascript:alert(1)) mail (mailto:a@b.c) <a href="https://p.q/r.png">pic</a>`,
			slack:    "<https://a.b/c_d_e> <https://x.y> x (javascript:alert(1)) mail (mailto:a@b.c) <https://p.q/r.png|pic>",
			plain:    "https://a.b/c_d_e https://x.y x (javascript:alert(1)) mail (mailto:a@b.c) pic (https://p.q/r.png)",
		},
		{
			name: "quotes in addresses", in: `[a"b](https://x.y/"onclick=<b>)`,
			telegram: `<a href="https://x.y/&quot;onclick=&lt;b&gt;">a&quot;b</a>`,
			slack:    `<https://x.y/"onclick=%3Cb%3E|a"b>`,
			plain:    `a"b (https://x.y/"onclick=<b>)`,
		},
		{
			name: "blocks", in: "# Title **x**\n\ntext\nmore\n\n> quoted\n> > twice\n\n---\n",
			telegram: "<b>Title x</b>\n\ntext\nmore\n\n<blockquote>quoted\n\ntwice</blockquote>\n\n──────────",
			slack:    "*Title x*\n\ntext\nmore\n\n> quoted\n> \n> twice\n\n──────────",
			plain:    "Title x\n\ntext\nmore\n\n> quoted\n> \n> twice\n\n──────────",
		},
		{
			name: "lists", in: "- one\n- two\n  1. a\n  2. b\n- three\n\n3) x\n4) y",
			telegram: "• one\n• two\n  1. a\n  2. b\n• three\n\n3. x\n4. y",
			slack:    "• one\n• two\n  1. a\n  2. b\n• three\n\n3. x\n4. y",
			plain:    "• one\n• two\n  1. a\n  2. b\n• three\n\n3. x\n4. y",
		},
		{
			name: "code", in: "```go\nif a < b && c {\n```\n\n```\"><b>\nx\n```",
			telegram: "<pre><code class=\"language-go\">if a &lt; b &amp;&amp; c {</code></pre>\n\n<pre>x</pre>",
			slack:    "```\nif a &lt; b &amp;&amp; c {\n```\n\n```\nx\n```",
			plain:    "if a < b && c {\n\nx",
		},
		{
			name: "raw HTML is text", in: "<b>not bold</b> a<br>b &lt;i&gt; &amp;amp; \\*x\\*",
			telegram: "&lt;b&gt;not bold&lt;/b&gt; a\nb &lt;i&gt; &amp;amp; *x*",
			slack:    "&lt;b&gt;not bold&lt;/b&gt; a\nb &lt;i&gt; &amp;amp; *x*",
			plain:    "<b>not bold</b> a\nb <i> &amp; *x*",
		},
		{
			name: "spoiler", in: "||secret|| but a || b || c",
			telegram: "<tg-spoiler>secret</tg-spoiler> but a || b || c",
			slack:    "secret but a || b || c",
			plain:    "secret but a || b || c",
		},
		{
			name: "broadcasts", in: "use <!channel> or @everyone, <@U0ADMIN>",
			telegram:      "use &lt;!channel&gt; or @everyone, &lt;@U0ADMIN&gt;",
			slack:         "use &lt;\u200b!channel&gt; or @\u200beveryone, &lt;\u200b@U0ADMIN&gt;",
			plain:         "use <!channel> or @everyone, <@U0ADMIN>",
			slackMarkdown: "use <\u200b!channel> or @\u200beveryone, <\u200b@U0ADMIN>",
		},
		{
			name: "table", in: "| Name | Größe |\n|---|--:|\n| **a** | 1 |\n| 你好 | 22 \\| 3 |\nend",
			telegram: "<pre>Name | Größe\n-----+-------\na    | 1\n你好 | 22 | 3</pre>\n\nend",
			slack:    "```\nName | Größe\n-----+-------\na    | 1\n你好 | 22 | 3\n```\n\nend",
			plain:    "Name | Größe\n-----+-------\na    | 1\n你好 | 22 | 3\n\nend",
			discord:  "```\nName | Größe\n-----+-------\na    | 1\n你好 | 22 | 3\n```\nend",
		},
		{
			name: "small headings", in: "### three\n#### four **x**\n```\n#### code\n```",
			telegram: "<b>three</b>\n\n<b>four x</b>\n\n<pre>#### code</pre>",
			slack:    "*three*\n\n*four x*\n\n```\n#### code\n```",
			plain:    "three\n\nfour x\n\n#### code",
			discord:  "### three\n**four x**\n```\n#### code\n```",
		},
		{
			name: "nothing would be left", in: "[x]: https://example.com",
			telegram: "[x]: https://example.com", slack: "[x]: https://example.com", plain: "[x]: https://example.com",
		},
		{
			name: "code that contains fences", in: "`` a`b ``\n\n````\n```\n````",
			telegram: "<code>a`b</code>\n\n<pre>```</pre>",
			slack:    "`aˋb`\n\n```\n``\u200b`\n```",
			plain:    "a`b\n\n```",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := map[Dialect]string{TelegramHTML: tt.telegram, SlackMrkdwn: tt.slack, Plain: tt.plain, Markdown: tt.in, DiscordMarkdown: tt.in, SlackMarkdown: tt.in}
			if tt.discord != "" {
				want[DiscordMarkdown] = tt.discord
			}
			if tt.slackMarkdown != "" {
				want[SlackMarkdown] = tt.slackMarkdown
			}
			for d, w := range want {
				if diff := cmp.Diff(strings.TrimSpace(w), Render(tt.in, d)); diff != "" {
					t.Errorf("dialect %d: %s", d, diff)
				}
			}
		})
	}
}

func TestMessages(t *testing.T) {
	telegram := Limits{Units: 4000, Visible: 4096}
	row := "| a | b | c | d | e | f |\n"
	bigTable := row + "|-|-|-|-|-|-|\n" + strings.Repeat(row, 300) + strings.Repeat("w", 32) + "|" + strings.Repeat("w", 32) + "|c|d|e|f|"
	got := Messages(bigTable, TelegramHTML, telegram)
	if len(got) < 2 {
		t.Errorf("%d messages", len(got))
	}
	for _, m := range got {
		if !strings.HasPrefix(m.Text, "<pre>") || !strings.HasSuffix(m.Text, "</pre>") {
			t.Errorf("a part of the table is no code block: %.40q", m.Text)
		}
	}
	if got := Messages("\u200b \n", TelegramHTML, telegram); got != nil {
		t.Errorf("nothing to see gives %+v", got)
	}
	want := []Message{{Text: "a <b>b</b>", Plain: "a b", Source: "a **b**"}}
	if diff := cmp.Diff(want, Messages("a **b**\n", TelegramHTML, telegram)); diff != "" {
		t.Error(diff)
	}
	// Raw text that becomes longer than its source can still be shown.
	for _, m := range Messages(strings.Repeat("\n- x", 100), Plain, Limits{Units: 400, Visible: 100}) {
		if Units(m.Text) > 100 {
			t.Errorf("%d units are to be seen", Units(m.Text))
		}
	}
}

// checkTelegram holds that the platform accepts every message and shows no more than it can.
func checkTelegram(t failer, md string, messages []Message, l Limits) {
	t.Helper()
	for _, m := range messages {
		text, _, err := emulator.ParseHTML(m.Text)
		switch {
		case err != nil:
			t.Errorf("%q → %q: %v", md, m.Text, err)
		case strings.TrimSpace(text) == "":
			t.Errorf("%q → %q: nothing to see", md, m.Text)
		case Units(text) > l.Visible || Units(m.Plain) > l.Visible:
			t.Errorf("%q: %d and %d units, limit %d", md, Units(text), Units(m.Plain), l.Visible)
		}
	}
}

func markdownText() *rapid.Generator[string] {
	fragment := rapid.OneOf(
		rapid.SampledFrom([]string{
			"**", "*", "_", "~~", "||", "`", "``", "[", "](", "](https://x.y/", ")", "![", "<b>", "</b>", "<", ">", "&", "&lt;", "&#60;", "\\", "<https://a.b>",
			"https://c.d/e", "\n", "\n\n", "\n> ", "\n- ", "\n1. ", "\n# ", "\n```go\n", "\n```\n", "\n| a | b |\n|---|---|\n| c |", "\n<div>", "\n---\n", "😀", "\x00", "\xff", "a", "b c",
		}),
		rapid.String(),
	)
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(fragment, 0, 40).Draw(t, "fragments"), "") })
}

func TestTelegramAcceptsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		md := markdownText().Draw(t, "md")
		l := Limits{Units: rapid.IntRange(8, 300).Draw(t, "units"), Visible: rapid.IntRange(70, 300).Draw(t, "visible")}
		checkTelegram(t, md, Messages(md, TelegramHTML, l), l)
		checkTelegram(t, md, Messages(CutPreview(md, l.Units), TelegramHTML, l), l)
	})
}

// What a model writes must never notify people on Slack.
func TestSlackNeverNotifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		md := markdownText().Draw(t, "md") + rapid.SampledFrom([]string{"<!channel>", "<@U1>", "[x](<!here>)", "`<!everyone>`", "<!subteam^S1>", "![<!here>](https://x.y)"}).Draw(t, "mention")
		for _, d := range []Dialect{SlackMrkdwn, SlackMarkdown} {
			got := Render(md, d)
			for _, bad := range []string{"<!", "<@"} {
				if i := strings.Index(got, bad); i >= 0 && broadcast.MatchString(got[i:]) {
					t.Errorf("dialect %d: %q → %q", d, md, got)
				}
			}
		}
	})
}

// brittle is a style that fails.
type brittle struct{ plainStyle }

func (brittle) span(span, string) string { panic("a fault") }

// TestFaultShowsText: whatever goes wrong while a text is rendered, it is said.
func TestFaultShowsText(t *testing.T) {
	if got := renderTree("a **b** c", brittle{}); got != "a **b** c" {
		t.Errorf("got %q", got)
	}
}

func FuzzTelegram(f *testing.F) {
	f.Add("**a** `b` [c](https://d.e) <x> &amp; ||s||\n\n```go\nx<y\n```\n| a | b |\n|---|---|\n")
	f.Add("> - # *a\n> ```\n<b")
	f.Fuzz(func(t *testing.T, md string) {
		if len(md) > 8000 {
			return
		}
		l := Limits{Units: 400, Visible: 409}
		checkTelegram(t, md, Messages(md, TelegramHTML, l), l)
		checkTelegram(t, md, Messages(CutPreview(md, l.Units), TelegramHTML, l), l)
		for _, d := range []Dialect{Plain, SlackMrkdwn, SlackMarkdown, DiscordMarkdown} {
			for _, m := range Messages(md, d, l) {
				if Units(m.Text) > l.Visible {
					t.Errorf("dialect %d: %d units", d, Units(m.Text))
				}
			}
		}
	})
}
