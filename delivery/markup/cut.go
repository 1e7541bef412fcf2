package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutLine cuts one line so that the head has at most room units: at the end of a sentence in the
// second half, else at a space, else between two characters (spec/chat.md §2.5, rule 6). Outside
// code the white space around the cut is dropped.
func cutLine(line string, room int, code bool) (head, tail string) {
	fit := prefix(line, max(room, 2))
	if fit == line {
		return line, ""
	}
	at := sentenceEnd(line, fit)
	if at == 0 {
		at = lastSpace(line, fit)
	}
	if at == 0 {
		at = characterEnd(line, len(fit))
	}
	head, tail = line[:at], line[at:]
	if !code {
		head, tail = strings.TrimRight(head, " \t"), strings.TrimLeft(tail, " \t")
	}
	return head, tail
}

// sentenceEnd returns the offset behind the last sentence that ends in the second half of fit.
func sentenceEnd(line, fit string) int {
	best, half, n := 0, Units(fit)/2, 0
	for i, r := range fit {
		n += runeUnits(r)
		end := i + utf8.RuneLen(r)
		switch r {
		case '。', '！', '？':
		case '.', '!', '?':
			if end >= len(line) || line[end] != ' ' {
				continue
			}
		default:
			continue
		}
		if n > half {
			best = end
		}
	}
	return best
}

// lastSpace returns the offset behind the last space of fit that has text before it. A space right
// behind fit counts too.
func lastSpace(line, fit string) int {
	if line[len(fit)] == ' ' {
		return len(fit)
	}
	i := strings.LastIndexByte(fit, ' ')
	if i <= 0 || blank(fit[:i]) {
		return 0
	}
	return i + 1
}

// characterEnd moves a cut back so that it does not separate what is drawn as one character:
// combining marks, joined emoji, flags. A run that is longer than any real character is cut where
// it was.
func characterEnd(line string, at int) int {
	const longest = 64 // bytes
	for i := at; i > 0 && at-i <= longest; {
		before, n := utf8.DecodeLastRuneInString(line[:i])
		next, _ := utf8.DecodeRuneInString(line[i:])
		if !joined(line[:i], before, next) {
			return i
		}
		i -= n
	}
	return at
}

const (
	joiner     = '\u200d'
	firstFlag  = '\U0001F1E6'
	lastFlag   = '\U0001F1FF'
	firstShade = '\U0001F3FB'
	lastShade  = '\U0001F3FF'
)

func joined(head string, before, next rune) bool {
	switch {
	case before == joiner, next == joiner, unicode.Is(unicode.M, next):
		return true
	case next >= firstShade && next <= lastShade:
		return true
	case isFlag(before) && isFlag(next):
		n := 0
		for isFlag(lastRune(head)) {
			head = head[:len(head)-4]
			n++
		}
		return n%2 == 1
	}
	return false
}

func isFlag(r rune) bool { return r >= firstFlag && r <= lastFlag }
