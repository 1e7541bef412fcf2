package classify

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// tokenKind says how a token may match.
type tokenKind uint8

const (
	tokenWord   tokenKind = iota // a word, or one CJK character
	tokenNumber                  // 429, 10,000, 0.5
	tokenName                    // an id, a model, a path, an address: opaque to single words
	tokenQuote                   // a quoted span: opaque to everything
)

// token is one word of a message.
type token struct {
	start, end uint16 // into words.buf
	kind       tokenKind
	sentence   uint8
}

// Bounds of what is read of a message.
const (
	maxMatched = 1 << 10
	maxTokens  = 224
	maxQuote   = 240
)

// words is a message cut into words. Its zero value is empty; it lives on the stack.
type words struct {
	buf  [maxMatched]byte // the message in lower case
	list [maxTokens]token
	n    int
}

func (w *words) text(i int) []byte { return w.buf[w.list[i].start:w.list[i].end] }

// cut reads msg. Hyphened words are split ("rate-limited"), but what looks like a name stays whole
// ("gpt-4o", "openai/gpt", "call_00_abc", everything behind the word "model" that has a hyphen), so
// that no part of an id ever matches a phrase.
func (w *words) cut(msg []byte) {
	w.n = 0
	msg = unwrapQuotes(msg)
	if bytes.Contains(msg, []byte("’")) {
		msg = bytes.ReplaceAll(msg, []byte("’"), []byte("'"))
	}
	n := copy(w.buf[:], msg)
	b := w.buf[:n]
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	sentence := uint8(0)
	for i := 0; i < n && w.n < maxTokens; {
		c := b[i]
		switch {
		case c == '"' || c == '`' || c == '\'' || c == 0xe2 || c == 0xe3:
			if end := quoteEnd(b, i); end > i {
				if parameters[string(b[i+1:end-1])] {
					w.add(i+1, end-1, tokenWord, sentence)
				} else {
					w.add(i, end, tokenQuote, sentence)
				}
				i = end
				continue
			}
			if c >= 0x80 {
				i = w.rune(b, i, &sentence)
				continue
			}
			i++
		case isWordByte(c):
			i = w.run(b, i, sentence)
		case c >= 0x80:
			i = w.rune(b, i, &sentence)
		default:
			if c == '\n' || c == '!' || c == '?' || c == ';' || c == '.' && (i+1 == n || b[i+1] == ' ' || b[i+1] == '\n') {
				sentence++
			}
			i++
		}
	}
}

func (w *words) add(start, end int, k tokenKind, sentence uint8) {
	if w.n < maxTokens && end > start {
		w.list[w.n] = token{uint16(start), uint16(end), k, sentence}
		w.n++
	}
}

// rune takes one character outside ASCII: letters of scripts without spaces are a word each.
func (w *words) rune(b []byte, i int, sentence *uint8) (next int) {
	r, size := utf8.DecodeRune(b[i:])
	switch {
	case r == '。' || r == '！' || r == '；' || r == '？':
		*sentence++
	case unicode.IsLetter(r):
		end := i + size
		for !unspaced(r) && end < len(b) {
			next, size := utf8.DecodeRune(b[end:])
			if unspaced(next) || next >= utf8.RuneSelf && !unicode.IsLetter(next) && !unicode.IsMark(next) || next < utf8.RuneSelf && !isWordByte(b[end]) {
				break
			}
			end += size
		}
		w.add(i, end, tokenWord, *sentence)
		return end
	}
	return i + size
}

// unspaced tells whether r is of a script that writes words without spaces between them.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == 'ー'
}

// run takes a stretch of letters, digits and the signs that join them.
func (w *words) run(b []byte, start int, sentence uint8) (next int) {
	end := start
	for end < len(b) && (isWordByte(b[end]) || isJoint(b, end)) {
		end++
	}
	next = end
	for end > start && !isWordByte(b[end-1]) {
		end--
	}
	run := b[start:end]
	switch {
	case isNumber(run):
		w.add(start, end, tokenNumber, sentence)
	case w.isName(run):
		w.add(start, end, tokenName, sentence)
	default:
		from := start
		for i := start; i <= end; i++ {
			if i == end || !isWordByte(b[i]) && b[i] != '\'' {
				if isNumber(b[from:i]) {
					w.add(from, i, tokenNumber, sentence)
				} else {
					w.add(from, i, tokenWord, sentence)
				}
				from = i + 1
			}
		}
	}
	return max(next, start+1)
}

// isName tells whether a run names something rather than says something.
func (w *words) isName(run []byte) bool {
	if isPeriods(run) {
		return false
	}
	var letters, digits, joints int
	for i, c := range run {
		switch {
		case c == '/' || c == '@':
			return true
		case isDigit(c):
			digits++
		case c == '-' || c == '.' || c == ':':
			joints++
			if c == '-' && digits == i && isPeriod(run[i+1:]) { // "5-hour", "24-hour"
				return false
			}
		case c == '_':
			joints++
		default:
			letters++
		}
	}
	if joints == 0 {
		return false
	}
	if digits > 0 && (letters > 0 || joints > 1) { // "gpt-4o", "10.0.0.2:443", "2026-03-02"
		return true
	}
	if w.n > 0 && bytes.IndexByte(run, '-') > 0 {
		switch string(w.text(w.n - 1)) {
		case "model", "models", "deployment", "endpoint":
			return true
		}
	}
	return false
}

// isPeriods tells whether run joins windows only: "weekly/monthly".
func isPeriods(run []byte) bool {
	for {
		i := bytes.IndexByte(run, '/')
		part := run
		if i >= 0 {
			part = run[:i]
		}
		switch string(part) {
		case "hourly", "daily", "weekly", "monthly":
		default:
			return false
		}
		if i < 0 {
			return true
		}
		run = run[i+1:]
	}
}

func isPeriod(b []byte) bool {
	for _, p := range [...]string{"hour", "day", "minute", "min", "month", "week"} {
		if bytes.HasPrefix(b, []byte(p)) {
			return true
		}
	}
	return false
}

// isNumber tells whether run is digits, perhaps with separators.
func isNumber(run []byte) bool {
	digits := 0
	for _, c := range run {
		switch {
		case isDigit(c):
			digits++
		case c == ',' || c == '.':
		default:
			return false
		}
	}
	return digits > 0
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_'
}

// isJoint tells whether the byte at i joins two parts of one run.
func isJoint(b []byte, i int) bool {
	if i+1 >= len(b) {
		return false
	}
	next := b[i+1]
	switch b[i] {
	case '-', '@', '#', ':', '.':
		return isWordByte(next) || b[i] == ':' && next == '/'
	case '/':
		return isWordByte(next) || next == '/' || next == '-'
	case '\'':
		return next >= 'a' && next <= 'z' && i > 0 && isWordByte(b[i-1])
	case ',':
		return isDigit(next) && i > 0 && isDigit(b[i-1])
	case '?', '=', '&', '%':
		// only inside an address
		return isWordByte(next) && bytes.Contains(b[max(0, i-128):i], []byte("://")) && !bytes.ContainsAny(b[lastSpace(b, i):i], " ")
	}
	return false
}

func lastSpace(b []byte, i int) int { return bytes.LastIndexAny(b[:i], " \n\t(") + 1 }

// quotes maps an opening sign to the closing ones.
var quotes = map[rune]string{'"': `"`, '`': "`", '\'': "'", '“': "”", '‘': "’", '「': "」", '『': "』", '《': "》"}

// parameters are the names of API parameters that messages quote and rules speak of.
var parameters = map[string]bool{
	"max_tokens": true, "max_completion_tokens": true, "max_output_tokens": true, "inputs": true,
	"tool_use": true, "tool_result": true, "tool_calls": true, "tool_call_id": true,
}

// quoteEnd returns the index behind the quoted span that starts at i, or i when none does.
func quoteEnd(b []byte, i int) int {
	open, size := utf8.DecodeRune(b[i:])
	closing, ok := quotes[open]
	if !ok || i > 0 && open < 0x80 && open != '`' && isWordByte(b[i-1]) {
		return i
	}
	rest := b[i+size:]
	rest = rest[:min(len(rest), maxQuote)]
	for at := 0; ; {
		j := bytes.Index(rest[at:], []byte(closing))
		if j < 0 {
			return i
		}
		at += j
		after := at + len(closing)
		if open != '\'' || after >= len(rest) || !isWordByte(rest[after]) {
			return i + size + after
		}
		at = after
	}
}

// unwrapQuotes removes quotes around a whole message.
func unwrapQuotes(msg []byte) []byte {
	if n := len(msg); n > 2 && (msg[0] == '"' || msg[0] == '\'' || msg[0] == '`') && msg[n-1] == msg[0] &&
		bytes.IndexByte(msg[1:n-1], msg[0]) < 0 {
		return msg[1 : n-1]
	}
	return msg
}
