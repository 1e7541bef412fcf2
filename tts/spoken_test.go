package tts

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// checkWords fails when words could not be read aloud, or would do harm in the arguments of a program.
func checkWords(t interface{ Fatalf(string, ...any) }, words string) {
	if !utf8.ValidString(words) || strings.TrimSpace(words) != words {
		t.Fatalf("%q", words)
	}
	for _, r := range words {
		if r != '\n' && unicode.IsControl(r) || isEmoji(r) {
			t.Fatalf("%q holds %U", words, r)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add("# a *b* `c` [d](http://e) \x00 🎉\n\n```\nx\n```\n| a | b |\n|--|--|\n| c | d |")
	f.Fuzz(func(t *testing.T, md string) { checkWords(t, speakable(md)) })
}

// TestAnythingCanBeSaid: no text makes anything else than words.
func TestAnythingCanBeSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		md := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("*_`[]()!<>#|-~\n\n\t &;:/.\\0")))).Draw(t, "md")
		words := speakable(md)
		checkWords(t, words)
		checkWords(t, shorten(words, 20))
		if n := utf8.RuneCountInString(shorten(words, 20)); n > 20 {
			t.Fatalf("%d characters", n)
		}
	})
}

// TestHostileTexts: texts that are expensive for parsers are read in no time; one that is not would let
// the test run into its deadline.
func TestHostileTexts(t *testing.T) {
	const size = 1 << 20
	for _, unit := range []string{
		"[", "![", "[a](<b", "*", "*a _b ", "**a ", "`", "> ", "- ", "1. ", "<a ", "<!--", "&amp;", "\\*", "[a]: b\n", "|a", "|a|b|\n|-|-|\n", "```\n",
		"https://a.b/c ", "a@b.c ", "~~a", "# a\n", "a\n-\n", "a\u0301", "👩\u200d", "x", "\n", "[[tts", "[[tts:text]]",
	} {
		md := strings.Repeat(unit, size/len(unit))
		checkWords(t, speakable(md))
		strip(md)
	}
	var deep strings.Builder
	for n := 0; deep.Len() < longestMarkdown; n++ {
		deep.WriteString(strings.Repeat("  ", n%200) + "- x\n")
	}
	checkWords(t, speakable(deep.String()))
	checkWords(t, speakable(strings.Repeat("*a ", 8000)+strings.Repeat("b* ", 8000)))
}
