package markup

import (
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
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Split(tt.in, tt.limits)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A long info string must not push the chunks that repeat it over the limit.
func TestSplitLongInfoString(t *testing.T) {
	md := "```" + strings.Repeat("i", 700) + "\n" + strings.Repeat("some code\n", 600) + "```"
	chunks := Split(md, Limits{Units: 2000})
	checkChunks(t, md, chunks, Limits{Units: 2000})
	if !strings.HasPrefix(chunks[0], "```iii") {
		t.Errorf("the first chunk lost its language: %.20q", chunks[0])
	}
	if !strings.HasPrefix(chunks[1], "```\n") {
		t.Errorf("the second chunk repeats a long info string: %.20q", chunks[1])
	}
}

type failer interface {
	Helper()
	Errorf(format string, args ...any)
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
		if openFence(c).open() {
			t.Errorf("open fence: %q", c)
		}
	}
	if !strings.Contains(md, "```") && !strings.Contains(md, "~~~") {
		if got, want := letters(strings.Join(chunks, "")), letters(normalise(md)); got != want {
			t.Errorf("text changed: %q, want %q", got, want)
		}
	}
}

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || string(r) == zeroWidth {
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
		checkChunks(t, md, Split(md, l), l)
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("one.\n\n```go\ncode\n```\n", 12, 0)
	f.Add("~~~\n\xff\r\n```", 4, 1)
	f.Fuzz(func(t *testing.T, md string, limit, rows int) {
		l := Limits{Units: leastLimit + (limit&0xffff)%5000, Lines: (rows & 0xff) % 40}
		if len(md) > 200*l.Units { // more chunks than any answer has
			return
		}
		checkChunks(t, md, Split(md, l), l)
	})
}

func TestCutPreview(t *testing.T) {
	tests := []struct {
		name, in string
		limit    int
		want     string
	}{
		{"fits", "all of it", 100, "all of it"},
		{"cut", "one two three", 10, "one two …"},
		{"fence is closed", "```go\nx", 100, "```go\nx\n```"},
		{"cut in a fence", "```go\nabcdefghijklmnop", 18, "```go\nabcdef …\n```"},
		{"opener alone", "text\n```golang", 12, "text …"},
		{"behind a closed fence", "```\na\n```\nmore and more", 11, "```\na\n```\n…"},
		{"no limit", "```\nx", 0, "```\nx\n```"},
		{"tiny", "abcdefgh", 2, "ab …"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := CutPreview(tt.in, tt.limit); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCutPreviewInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		md := strings.Join(rapid.SliceOfN(lineOf(), 0, 12).Draw(t, "lines"), "\n")
		limit := rapid.IntRange(leastLimit, 80).Draw(t, "limit")
		got := CutPreview(md, limit)
		if Units(got) > limit || openFence(got).open() {
			t.Errorf("limit %d: %q → %q", limit, md, got)
		}
	})
}
