package markup

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSplitVectors(t *testing.T) {
	tests := []struct {
		name   string
		in     string
		limits Limits
		want   []string
	}{
		{
			"blank lines", "one two three four.\n\nfive six seven eight.\n\nnine ten.",
			Limits{Units: 30},
			[]string{"one two three four.", "five six seven eight.", "nine ten."},
		},
		{
			"fence reopened with its language", "Intro:\n```go\nfunc a() {}\nfunc b() {}\nfunc c() {}\nfunc d() {}\n```\nDone.",
			Limits{Units: 40},
			[]string{"Intro:\n```go\nfunc a() {}\nfunc b() {}\n```", "```go\nfunc c() {}\nfunc d() {}\n```\nDone."},
		},
		{
			"hard cut", strings.Repeat("x", 50),
			Limits{Units: 20},
			[]string{strings.Repeat("x", 19), strings.Repeat("x", 19), strings.Repeat("x", 12)},
		},
		{
			"emoji are two units", strings.Repeat("😀", 15),
			Limits{Units: 11},
			[]string{strings.Repeat("😀", 5), strings.Repeat("😀", 5), strings.Repeat("😀", 5)},
		},
		{
			"sentence ends of other scripts", strings.Repeat("你好。", 10),
			Limits{Units: 12},
			[]string{strings.Repeat("你好。", 3), strings.Repeat("你好。", 3), strings.Repeat("你好。", 3), "你好。"},
		},
		{
			"tilde fence", "~~~\n" + strings.Repeat("line\n", 8) + "~~~",
			Limits{Units: 25},
			[]string{"~~~\nline\nline\nline\n~~~", "~~~\nline\nline\nline\n~~~", "~~~\nline\nline\n~~~"},
		},
		{
			"a tail that looks like a fence", "some words here ~~~\nnext",
			Limits{Units: 17},
			[]string{"some words here", zeroWidth + "~~~\nnext"},
		},

		{"fits", "short\n\ntext\r\n", Limits{Units: 100}, []string{"short\n\ntext"}},
		{"exactly the limit", strings.Repeat("x", 20), Limits{Units: 20}, []string{strings.Repeat("x", 20)}},
		{"nothing", " \n\t\n", Limits{Units: 10}, nil},
		{"no limit", "a\n\nb", Limits{}, []string{"a\n\nb"}},
		{"open fence is closed", "```\ncode", Limits{Units: 100}, []string{"```\ncode\n```"}},
		{
			"opener moves to its code", "12345678901234\n```\nabcdefgh\n```",
			Limits{Units: 22},
			[]string{"12345678901234", "```\nabcdefgh\n```"},
		},
		{"longer fence inside", "````\n```\nx\n```\n````", Limits{Units: 100}, []string{"````\n```\nx\n```\n````"}},
		{"line limit", "1\n2\n3\n4\n5", Limits{Units: 100, Lines: 2}, []string{"1\n2", "3\n4", "5"}},
		{"line limit in a fence", "```\n1\n2\n3\n```", Limits{Units: 100, Lines: 4}, []string{"```\n1\n2\n```", "```\n3\n```"}},
		{"line limit too small for a fence", "```\n1\n2\n```", Limits{Units: 100, Lines: 1}, []string{"```\n1\n```", "```\n2\n```"}},
		{
			"newline mode", strings.Repeat("a", 210) + "\n\n" + strings.Repeat("b", 210) + "\n\nshort",
			Limits{Units: 1000, Newline: true},
			[]string{strings.Repeat("a", 210), strings.Repeat("b", 210) + "\n\nshort"},
		},
		{
			"newline mode keeps code together", strings.Repeat("a", 210) + "\n\n```\nx\n\ny\n```" + strings.Repeat("\nz", 100),
			Limits{Units: 1000, Newline: true},
			[]string{strings.Repeat("a", 210), "```\nx\n\ny\n```" + strings.Repeat("\nz", 100)},
		},
		{"sentence end in the first half", "Hi. aaaa bbbb cccc dddd", Limits{Units: 16}, []string{"Hi. aaaa bbbb", "cccc dddd"}},
		{"blank line in the first half", "ab\n\ncccccccccccc\ndddddddddd", Limits{Units: 20}, []string{"ab\n\ncccccccccccc", "dddddddddd"}},
		{"family is one character", strings.Repeat("x", 6) + "👨‍👩‍👧", Limits{Units: 12}, []string{"xxxxxx", "👨‍👩‍👧"}},
		{"flags are pairs", "x🇩🇪🇫🇷", Limits{Units: 8}, []string{"x🇩🇪", "🇫🇷"}},
		{
			"a table repeats its header", "| a | b |\n|---|---|\n| 1 | one |\n| 2 | two |\n| 3 | three |\nend",
			Limits{Units: 45},
			[]string{"| a | b |\n|---|---|\n| 1 | one |\n| 2 | two |", "| a | b |\n|---|---|\n| 3 | three |\nend"},
		},
		{
			"a header is not parted from its rows", "some words above it\n\n| a | b |\n|---|---|\n| 1 | one |",
			Limits{Units: 45},
			[]string{"some words above it", "| a | b |\n|---|---|\n| 1 | one |"},
		},
		{
			"a table in a quote", "> | a | b |\n> |---|---|\n> | 1 | one |\n> | 2 | two |",
			Limits{Units: 50},
			[]string{"> | a | b |\n> |---|---|\n> | 1 | one |", "> | a | b |\n> |---|---|\n> | 2 | two |"},
		},
		{
			"code in a quote", "> ```go\n> a()\n> b()\n> c()\n> ```\nend",
			Limits{Units: 30},
			[]string{"> ```go\n> a()\n> b()\n> ```", "> ```go\n> c()\n> ```\nend"},
		},
		{
			"code in a list", "1. do:\n   ```go\n   a()\n   b()\n   c()\n   ```\n2. end",
			Limits{Units: 38},
			[]string{"1. do:\n   ```go\n   a()\n   b()\n   ```", "```go\nc()\n```\n2. end"},
		},
		{
			"a list further out goes on", "- one\n  - two\n    - three\n    - four\n  - five\n- six",
			Limits{Units: 27},
			[]string{"- one\n  - two\n    - three", "- four\n- five\n- six"},
		},
		{
			"the rest of an item stands apart from the next one", "1. one two three four five\n2. six",
			Limits{Units: 20},
			[]string{"1. one two three", "four five\n\n2. six"},
		},
		{
			"a long line of a quote", "> one two three four five six",
			Limits{Units: 20},
			[]string{"> one two three", "> four five six"},
		},
		{
			"a link is not cut", "some words [a link text](https://x.example) and more",
			Limits{Units: 45},
			[]string{"some words [a link text](https://x.example)", "and more"},
		},
		{
			"a link goes to the next message", "some more words here [a link text](https://x.example)",
			Limits{Units: 45},
			[]string{"some more words here", "[a link text](https://x.example)"},
		},
		{
			"emphasis over two lines is not cut", "one two three\nfour **five\nsix** seven",
			Limits{Units: 27},
			[]string{"one two three", "four **five\nsix** seven"},
		},
		{
			"emphasis longer than a message is begun anew", "**one two three four five six seven eight**",
			Limits{Units: 26},
			[]string{"**one two three four**", "**five six seven eight**"},
		},
		{
			"code longer than a message is begun anew", "see `one two three four five six seven` there",
			Limits{Units: 24},
			[]string{"see `one two three`", "`four five six seven`", "there"},
		},
		{
			"a heading stays with its text", "0123456789\n\n## Title\n\nfive six seven",
			Limits{Units: 30},
			[]string{"0123456789", "## Title\n\nfive six seven"},
		},
		{
			"an underlined heading stays whole", "some words\n\nTitle\n=====\ntext",
			Limits{Units: 20},
			[]string{"some words", "Title\n=====\ntext"},
		},
		{
			"a tail is no list, quote or heading", "the value of it is\u00a0> 5 and\u00a0# no more",
			Limits{Units: 23},
			[]string{"the value of it is\u00a0> 5", "and\u00a0# no more"},
		},
		{
			"a tail that looks like a quote", "one two three four > five",
			Limits{Units: 20},
			[]string{"one two three four", zeroWidth + "> five"},
		},
		{
			"directional runs end and start again", "one \u2067two three four five\u2069 six",
			Limits{Units: 18},
			[]string{"one \u2067two three\u2069", "\u2067four five\u2069 six"},
		},
		{"syllables are whole", strings.Repeat("क्षि", 4), Limits{Units: 10}, []string{"क्षिक्षि", "क्षिक्षि"}},
		{"control characters open no fence", "\x00```\nx", Limits{Units: 100}, []string{"```\nx\n```"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, chunksOf(tt.in, tt.limits)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A long info string must not push the chunks that repeat it over the limit.
func TestSplitLongInfoString(t *testing.T) {
	md := "```" + strings.Repeat("i", 700) + "\n" + strings.Repeat("some code\n", 600) + "```"
	chunks := chunksOf(md, Limits{Units: 2000})
	checkChunks(t, md, chunks, Limits{Units: 2000})
	if !strings.HasPrefix(chunks[0], "```iii") {
		t.Errorf("the first chunk lost its language: %.20q", chunks[0])
	}
	if !strings.HasPrefix(chunks[1], "```\n") {
		t.Errorf("the second chunk repeats a long info string: %.20q", chunks[1])
	}
}

// checkChunks holds the invariants of spec/chat.md §2.5 and that no text is lost.
func checkChunks(t failer, md string, chunks []string, l Limits) {
	t.Helper()
	for _, c := range chunks {
		if n := Units(c); n > l.Units {
			t.Errorf("%d units, limit %d: %q", n, l.Units, c)
		}
		if blank(c) {
			t.Errorf("blank chunk of %q", md)
		}
		if analyse(c).open != nil || !nested.MatchString(md) && openFence(c).open() {
			t.Errorf("open fence: %q", c)
		}
	}
	if !strings.Contains(md, "```") && !strings.Contains(md, "~~~") {
		if got, want := letters(strings.Join(chunks, "")), letters(clean(md)); got != want {
			t.Errorf("text changed: %q, want %q", got, want)
		}
	}
}

// nested finds code in lists and quotes, which reading line by line does not understand.
var nested = regexp.MustCompile(`(?m)^\s*(?:[-+*>]|\d+[.)])`)

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune(zeroWidth+"`*_~|>", r) { // marks are repeated
			return -1
		}
		return r
	}, s)
}

// lineOf draws lines that provoke: fences of all sorts, long words, wide characters.
func lineOf() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "", "```", "```go", "~~~", "~~~~ x", "````", "   ```", "``` a`b", "```" + strings.Repeat("i", 40), "    ```", " ", "text",
			"a ``` b", "aaaa ~~~ ```go", strings.Repeat("`", 30), strings.Repeat("~ ", 20), "😀😀😀 ~~~", "e\u0301e\u0301e\u0301", "你好。再见！", "| a | b |", "|-|-|",
		}),
		rapid.StringMatching("[a-z `~.!?。😀]{0,60}"),
	)
}

func TestSplitInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		md := strings.Join(rapid.SliceOfN(lineOf(), 0, 30).Draw(t, "lines"), "\n")
		l := Limits{
			Units:   rapid.IntRange(leastLimit, 80).Draw(t, "limit"),
			Lines:   rapid.IntRange(0, 6).Draw(t, "rows"),
			Newline: rapid.Bool().Draw(t, "newline"),
		}
		checkChunks(t, md, chunksOf(md, l), l)
	})
}
