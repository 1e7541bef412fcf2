package delivery

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTags(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		chosen           pointer
	}{
		{"none", "Paris [[is]] a city.", "Paris [[is]] a city.", pointer{}},
		{"current", "[[reply_to_current]] Paris.", "Paris.", pointer{current: true}},
		{"by id", "Paris. [[reply_to:77]]", "Paris.", pointer{id: "77"}},
		{"blanks and case", "[[ Reply_To: 77 ]]\n\nParis.", "Paris.", pointer{id: "77"}},
		{"the first counts", "[[reply_to:1]]Paris[[reply_to_current]] is[[reply_to:3]].", "Parisis.", pointer{id: "1"}},
		{"in the middle", "Paris [[reply_to_current]] is a city.", "Paris is a city.", pointer{current: true}},
		{"in inline code", "Write `[[reply_to_current]]` for that.", "Write `[[reply_to_current]]` for that.", pointer{}},
		{"behind inline code", "`x` [[reply_to_current]] y", "`x` y", pointer{current: true}},
		{"in a code block", "```\n[[reply_to:1]]\n```\n[[reply_to:2]] x", "```\n[[reply_to:1]]\n```\nx", pointer{id: "2"}},
		{"no id", "[[reply_to:]] x", "[[reply_to:]] x", pointer{}},
		{"two words", "[[reply_to: 1 2]] x", "[[reply_to: 1 2]] x", pointer{}},
		{"an endless id", "[[reply_to:" + strings.Repeat("1", 65) + "]]", "[[reply_to:" + strings.Repeat("1", 65) + "]]", pointer{}},
		{"nothing else", "[[reply_to_current]]", "", pointer{current: true}},
	} {
		if got, chosen := takeTags(c.text); got != c.want || chosen != c.chosen {
			t.Errorf("%s: %q, %+v, want %q, %+v", c.name, got, chosen, c.want, c.chosen)
		}
	}
}

// TestTagsHalfWritten: however a text is cut while it is written, nothing of a tag is seen, and what
// was seen before stays (what was appended to a stream cannot be taken back).
func TestTagsHalfWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{
			"[[reply_to_current]]", "[[ reply_to: 77 ]]", "Paris", "is", "[[a]]", "a[1]", "x[", "\n\n", "**big**",
		}), 1, 12).Draw(t, "words")
		text := strings.Join(words, " ")
		shown := ""
		for i := range text + " " { // between characters
			now, _ := unfinished(text[:i])
			if strings.Contains(now, "reply_to") || strings.Contains(now, "[[r") {
				t.Fatalf("half a tag is seen: %q", now)
			}
			if !strings.HasPrefix(now, shown) {
				t.Fatalf("%q was seen, now it is %q", shown, now)
			}
			shown = now
		}
	})
}

func TestWithoutTagStart(t *testing.T) {
	for in, want := range map[string]string{
		"Paris":                                  "Paris",
		"Paris [":                                "Paris ",
		"Paris [[":                               "Paris ",
		"Paris [[ re":                            "Paris ",
		"Paris [[reply_to:12 ]":                  "Paris ",
		"Paris [[reply_to\nx":                    "Paris [[reply_to\nx",
		"Paris [[rest":                           "Paris [[rest",
		"Paris [[reply_to_all":                   "Paris ",
		"a [[1]] b":                              "a [[1]] b",
		"[[reply_to:1]] [[reply":                 "[[reply_to:1]] ",
		"[[reply_to:" + strings.Repeat("1", 100): "[[reply_to:" + strings.Repeat("1", 100),
	} {
		if got := withoutTagStart(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
