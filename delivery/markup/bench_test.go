package markup

import (
	"fmt"
	"strings"
	"testing"
)

// answer is a text of about so many bytes as models write it.
func answer(size int) string {
	const part = "## Section\n\nSome **bold** text with `code`, a [link](https://example.com/a?b=c) and *more* words to read.\n" +
		"It goes on for a second line & ends < here.\n\n- one\n- two **three**\n  1. four\n\n" +
		"| Name | Value |\n|:-----|------:|\n| a | 1 |\n| **b** | 22 |\n\n```go\nfunc main() { println(1 < 2) }\n```\n\n> quoted words\n\n"
	return strings.Repeat(part, size/len(part)+1)[:size]
}

// hostile are texts that are expensive for parsers that search without bounds.
func hostile(size int) map[string]string {
	repeat := func(s string) string { return strings.Repeat(s, size/len(s)) }
	quarter := func(s string) string { return strings.Repeat(s, size/4/len(s)) }
	var growing strings.Builder
	for n := 1; growing.Len() < size; n++ {
		growing.WriteString(strings.Repeat("`", n%300+1) + " ")
	}
	var deep strings.Builder
	for n := 0; deep.Len() < size; n++ {
		deep.WriteString(strings.Repeat("  ", n%400) + "- x\n")
	}
	return map[string]string{
		"brackets":       repeat("["),
		"brackets close": quarter("[") + "a" + quarter("]") + quarter("(b)"),
		"links open":     repeat("[a](<b"),
		"link titles":    repeat(`[a](b "`),
		"images":         quarter("![") + quarter("](x)"),
		"stars":          repeat("*"),
		"stars apart":    repeat("a* "),
		"openers":        repeat("*a _b "),
		"openers cross":  repeat("*a_ "),
		"nested":         quarter("*a ") + quarter("b* "),
		"bold nested":    quarter("**a ") + quarter("b** "),
		"bars":           repeat("|| a"),
		"backticks":      repeat("`"),
		"growing ticks":  growing.String(),
		"quotes":         repeat(">"),
		"quote lines":    repeat("> > > > a\n"),
		"dashes":         repeat("- "),
		"deep list":      deep.String(),
		"numbers":        repeat("1. "),
		"tags":           repeat("<a "),
		"comments":       repeat("<!--"),
		"references":     repeat("&amp;"),
		"escapes":        repeat(`\*`),
		"definitions":    repeat("[a]: b\n"),
		"table wide":     quarter("|a") + "\n" + quarter("|-") + "\n" + quarter("|\n"),
		"table long":     "|a|b|\n|-|-|\n" + repeat("|`|\n"),
		"fences":         repeat("```\n"),
		"fence markers":  repeat("`````\n```\n"),
		"blank lines":    repeat("\n"),
		"addresses":      repeat("https://a.b/c "),
		"mails":          repeat("a@b.c "),
		"math":           repeat("$a "),
		"isolates":       repeat("\u2067a\n"),
		"isolates wide":  repeat("\u2067a"),
		"marks":          "a" + repeat("\u0301"),
		"joiners":        repeat("👩\u200d"),
		"one word":       repeat("x"),
		"one line":       repeat("word "),
		"ideographs":     repeat("重"),
		"headings":       repeat("# a\n"),
		"underlines":     repeat("a\n-\n"),
		"scaffolding":    repeat("<think>"),
	}
}

func benchmark(b *testing.B, md string) {
	for _, d := range []Dialect{TelegramHTML, SlackMrkdwn, SlackMarkdown, DiscordMarkdown} {
		l := map[Dialect]Limits{TelegramHTML: {Units: 4000, Visible: 4096}, DiscordMarkdown: {Units: 2000, Lines: 17}}[d]
		if l.Units == 0 {
			l.Units = 8000
		}
		b.Run([...]string{"", "", "telegram", "mrkdwn", "markdown_text", "discord"}[d], func(b *testing.B) {
			b.SetBytes(int64(len(md)))
			b.ReportAllocs()
			for b.Loop() {
				Messages(md, d, l)
			}
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	for _, kb := range []int{10, 100} {
		b.Run(fmt.Sprintf("%dKB", kb), func(b *testing.B) { benchmark(b, answer(kb<<10)) })
	}
}

func BenchmarkPreview(b *testing.B) {
	md := answer(10 << 10)
	b.SetBytes(int64(len(md)))
	for b.Loop() {
		Messages(CutPreview(md, 4000), TelegramHTML, Limits{Units: 4000, Visible: 4096})
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, md := range hostile(100 << 10) {
		b.Run(name, func(b *testing.B) { benchmark(b, md) })
	}
}
