package markup

import (
	"strings"
	"testing"
)

// seeds are texts that were difficult once, and what they are made of.
var seeds = []string{
	"**a** `b` [c](https://d.e) <x> &amp; ||s||\n\n```go\nx<y\n```\n| a | b |\n|---|---|\n",
	"> - # *a\n> ```\n<b",
	"1. a\n   ```\n   b\n\n2. c\n> | a | b |\n> |-|-|\n> | c |",
	"- ```\n  a\nb\n~~~ x\n    ```",
	"***a*b**c `` ` `` [![x](y)](https://z.z/(a) \\* \u2067a\n\u2069",
	"[a]: https://b.c\n[a] [^1] $x_1$ @[everyone](x:y) <!here>",
	"a\n===\n-\n---\n# b #\n\t- c\n \t d",
	"👩\u200d👩\u200d👧 你好。**重点：**内容 \xff\x00\r\n\u202eא",
}

func addSeeds(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, uint16(len(s)/2))
	}
}

// fuzzDialect holds that whatever a model writes, its platform takes it, and a preview of it too.
func fuzzDialect(f *testing.F, d Dialect) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, md string, limit uint16) {
		if len(md) > 4000 {
			return
		}
		units := 40 + int(limit)%400
		l := Limits{Units: units, Visible: units + 40, Lines: int(limit) % 20}
		check(t, d, md, Messages(md, d, l), l)
		check(t, d, md, Messages(CutPreview(md, units), d, l), l)
	})
}

func FuzzTelegram(f *testing.F) { fuzzDialect(f, TelegramHTML) }

func FuzzSlackMrkdwn(f *testing.F) { fuzzDialect(f, SlackMrkdwn) }

func FuzzSlackMarkdown(f *testing.F) { fuzzDialect(f, SlackMarkdown) }

func FuzzDiscord(f *testing.F) { fuzzDialect(f, DiscordMarkdown) }

// FuzzSplit holds the invariants of splitting, and that what is to be read stays the same wherever
// nothing has to be given up: a cut through a character reference or the target of a link is one.
func FuzzSplit(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, md string, limit uint16) {
		if len(md) > 4000 {
			return
		}
		l := Limits{Units: leastLimit + int(limit)%500, Lines: int(limit) % 30, Newline: limit%3 == 0}
		chunks := chunksOf(md, l)
		checkChunks(t, md, chunks, l)
		if l.Units < 60 || strings.ContainsAny(md, "&<[|$\\:") {
			return
		}
		var read strings.Builder
		for _, c := range chunks {
			read.WriteString(renderTree(c, plainStyle{}, nil))
		}
		if got, want := words(read.String()), words(renderTree(clean(md), plainStyle{}, nil)); got != want {
			t.Errorf("%q: says %q, not %q", md, got, want)
		}
	})
}

// words leaves the letters of a text.
func words(s string) string {
	return strings.Map(func(r rune) rune {
		if isLetter(r) && !isDigit(r) {
			return r
		}
		return -1
	}, s)
}
