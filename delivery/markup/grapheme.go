package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

const (
	joiner           = '\u200d'
	asEmoji          = '\ufe0f' // asks for the coloured form of the character before it
	longestCharacter = 256      // bytes; no character people read is longer, what pretends to be is cut
	firstFlag        = '\U0001F1E6'
	lastFlag         = '\U0001F1FF'
)

// characterEnd moves a cut back so that it does not separate what is drawn as one character:
// combining marks, joined emoji, flags, syllables (Unicode Standard Annex #29). The text must
// begin at the start of a character. A run that is longer than any real character is cut where it
// was.
func characterEnd(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	for i, end := range characters(text, at) {
		if end <= at {
			continue
		}
		if i == 0 || end-i > longestCharacter {
			break
		}
		return i
	}
	return at
}

// characters yields start and end of the characters of a text up to the one that covers an offset.
func characters(text string, upTo int) func(yield func(int, int) bool) {
	return func(yield func(int, int) bool) {
		const window = 4096 // look no further than needed
		text = text[:min(len(text), upTo+window)]
		it := graphemes.FromString(text)
		for it.Next() {
			if !yield(it.Start(), it.End()) || it.End() > upTo {
				return
			}
		}
	}
}

// columnsOf returns how many columns of a fixed-width font a text takes: East Asian and emoji
// characters take two, marks none.
func columnsOf(s string) int {
	ascii := strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	if ascii {
		return len(s)
	}
	n := 0
	it := graphemes.FromString(s)
	for it.Next() {
		n += characterColumns(it.Value())
	}
	return n
}

func characterColumns(s string) int {
	widest := 0
	for i, r := range s {
		switch {
		case r == asEmoji, r == joiner && i > 0, r >= firstFlag && r <= lastFlag:
			return 2
		default:
			widest = max(widest, runeColumns(r))
		}
	}
	return widest
}

func runeColumns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Yi),
		r >= 0x3000 && r <= 0x303E, r >= 0xFF01 && r <= 0xFF60, r >= 0xFFE0 && r <= 0xFFE6,
		r >= 0x1F300 && r <= 0x1F64F, r >= 0x1F680 && r <= 0x1F6FF, r >= 0x1F900 && r <= 0x1FAFF:
		return 2
	default:
		return 1
	}
}
