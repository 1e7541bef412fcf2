package markup

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

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
		{"characters are whole", "x🇩🇪🇫🇷", 8, "x🇩🇪 …"},
		{"emphasis is ended", "**one two three**", 12, "**one tw …**"},
		{"a link is whole or not there", "see [the page](https://x.example) now", 24, "see …"},
		{"rows are whole", "| a | b |\n|---|---|\n| one | x |\n| two | y |", 40, "| a | b |\n|---|---|\n| one | x |\n…"},
		{"a fence in a list", "- x\n  ```\n  code and more code", 24, "- x\n  ```\n  code …\n  ```"},
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

// Text that is still being written looks like what it is going to be.
func TestPreviewOfUnfinishedText(t *testing.T) {
	for in, want := range map[string]string{
		"This is **bold te": "This is **bold te**",
		"This is **bold*":   "This is **bold**",
		"***both":           "***both***",
		"an *it":            "an *it*",
		"~~gone and ||hid":  "~~gone and ||hid||~~",
		"a `co":             "a `co`",
		"a ``co`":           "a ``co``",
		"**a `b":            "**a `b`**",
		"a **":              "a",
		"2 * 3":             "2 * 3",
		"snake_case_":       "snake_case_",
		"see [doc](https:/": "see doc",
		"see [the do":       "see the do",
		"![pict](htt":       "pict",
		"f(a[0":             "f(a[0",

		"```go\nx := 1\n``":                  "```go\nx := 1\n```",
		"text\n``":                           "text",
		"text\n-":                            "text",
		"- a\n- [":                           "- a",
		"> q\n>":                             "> q",
		"Intro\n\n| a | b":                   "Intro",
		"Intro\n\n| a | b |\n|--":            "Intro",
		"Intro\n\n| a | b |\n|---|---|\n| x": "Intro\n\n| a | b |\n|---|---|\n| x",
		"| a | b |\n|---|---|\n| x | y |\n\nThen **mo": "| a | b |\n|---|---|\n| x | y |\n\nThen **mo**",
	} {
		if got := CutPreview(in, 0); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// Every step of an answer that is being written can be shown everywhere.
func TestPreviewsOfGrowingTexts(t *testing.T) {
	md := answer(700)
	for at := 0; at < len(md); at += 3 {
		shown := CutPreview(md[:at], 400)
		if n := Units(shown); n > 400 {
			t.Fatalf("%d units", n)
		}
		for _, d := range dialects {
			check(t, d, shown, Messages(shown, d, Limits{Units: 400, Visible: 500}), Limits{Units: 400, Visible: 500})
		}
		if telegram := Render(shown, TelegramHTML); strings.Contains(telegram, "**") || strings.Contains(telegram, "](") || strings.Contains(telegram, "|--") {
			t.Fatalf("half a mark is shown in %q", telegram)
		}
	}
}
