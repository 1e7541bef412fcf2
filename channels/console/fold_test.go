package console

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFold(t *testing.T) {
	for text, want := range map[string]string{
		"a system prompt of 39 characters":  "a system prompt of\n39 characters",
		"short\n\nlines stay":               "short\n\nlines stay",
		"https://example.com/a/long/path x": "https://example.com/\na/long/path x",
		"   - an item that is long":         "   - an item that is\nlong",
		"blanks at the edge   ":             "blanks at the edge  ",
		"日本語の文章はとても長いです":                    "日本語の文章はとても\n長いです",
	} {
		if got := fold(text, 20); got != strings.TrimRight(want, " ") && got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := fold(strings.Repeat("x", 50), 10); strings.Contains(got, "\n") {
		t.Errorf("too narrow to fold: %q", got)
	}
}

// However a text grows, no row is wider than the terminal, no word is lost, and only the last row changes.
func TestAGrowingTextChangesItsLastRowOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab 語\n")), 0, 120, -1).Draw(t, "text")
		width := rapid.IntRange(narrowest, 40).Draw(t, "width")
		before := ""
		for i := range text {
			now := fold(text[:i], width)
			for row := range strings.SplitSeq(now, "\n") {
				if span(row) > width {
					t.Fatalf("%q is wider than %d", row, width)
				}
			}
			if strings.Join(strings.Fields(now), "") != strings.Join(strings.Fields(text[:i]), "") {
				t.Fatalf("%q lost something of %q", now, text[:i])
			}
			if last := strings.LastIndexByte(before, '\n') + 1; !strings.HasPrefix(now, before[:last]) {
				t.Fatalf("%q became %q", before, now)
			}
			before = now
		}
	})
}
