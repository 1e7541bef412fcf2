package classify

import (
	"bytes"
	"iter"
	"strconv"
	"unicode/utf8"
)

// kind is what a JSON value is.
type kind uint8

const (
	kindNone kind = iota // missing, null, or not JSON
	kindObject
	kindArray
	kindString
	kindNumber
	kindTrue
	kindFalse
)

// value is one JSON value inside a body, not yet decoded. For a string, raw is what stands between
// the quotes; for everything else it is the value as written.
type value struct {
	kind    kind
	raw     []byte
	escaped bool // a string with backslashes
}

// maxText bounds every decoded text.
const maxText = 4 << 10

// readValue reads the value at the start of b and returns what follows it. It is tolerant: a body
// that was cut off ends all its open values, and strings may stand in single quotes, because
// proxies print inner errors as Python writes them.
func readValue(b []byte) (v value, rest []byte) {
	b = trimLeft(b)
	if len(b) == 0 {
		return value{}, nil
	}
	switch c := b[0]; {
	case c == '"' || c == '\'':
		end, escaped := stringEnd(b, c)
		v = value{kind: kindString, raw: b[1:end], escaped: escaped}
		return v, b[min(end+1, len(b)):]
	case c == '{':
		n := compositeEnd(b)
		return value{kind: kindObject, raw: b[:n]}, b[n:]
	case c == '[' || c == '(':
		n := compositeEnd(b)
		return value{kind: kindArray, raw: b[:n]}, b[n:]
	}
	n := 0
	for n < len(b) && !bytes.ContainsRune(literalEnd, rune(b[n])) {
		n++
	}
	v = value{raw: b[:n]}
	switch string(v.raw) {
	case "true", "True":
		v.kind = kindTrue
	case "false", "False":
		v.kind = kindFalse
	default:
		if n > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9') {
			v.kind = kindNumber
		}
	}
	return v, b[n:]
}

var literalEnd = []byte(" \t\r\n,:{}[]()\"'")

// stringEnd returns the index of the quote that closes the string at the start of b, or len(b).
func stringEnd(b []byte, quote byte) (end int, escaped bool) {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			escaped = true
			i++
		case quote:
			return i, escaped
		}
	}
	return len(b), escaped
}

// compositeEnd returns the length of the object or array at the start of b.
func compositeEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			end, _ := stringEnd(b[i:], c)
			i += end
		}
	}
	return len(b)
}

// members yields the keys and values of an object.
func members(obj []byte) iter.Seq2[[]byte, value] {
	return func(yield func([]byte, value) bool) {
		if len(obj) == 0 || obj[0] != '{' {
			return
		}
		for b := obj[1:]; ; {
			var key, v value
			key, b = readValue(skipCommas(b))
			if key.kind != kindString {
				return
			}
			b = trimLeft(b)
			if len(b) == 0 || b[0] != ':' {
				return
			}
			v, b = readValue(b[1:])
			if !yield(key.raw, v) {
				return
			}
		}
	}
}

// elements yields the values of an array.
func elements(arr []byte) iter.Seq[value] {
	return func(yield func(value) bool) {
		if len(arr) == 0 || arr[0] != '[' {
			return
		}
		for b := arr[1:]; ; {
			b = skipCommas(b)
			if len(b) == 0 || b[0] == ']' {
				return
			}
			var v value
			n := len(b)
			v, b = readValue(b)
			if len(b) == n || !yield(v) {
				return
			}
		}
	}
}

// firstElement returns the first value of an array.
func firstElement(arr []byte) (v value) {
	for v = range elements(arr) {
		return v
	}
	return v
}

// member returns the value of one key of an object.
func member(obj []byte, key string) value {
	for k, v := range members(obj) {
		if string(k) == key {
			return v
		}
	}
	return value{}
}

func trimLeft(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	return b
}

func skipCommas(b []byte) []byte {
	for b = trimLeft(b); len(b) > 0 && b[0] == ','; b = trimLeft(b[1:]) {
	}
	return b
}

// text returns the decoded string, at most maxText bytes of it; "" for other kinds.
func (v value) text() []byte {
	if v.kind != kindString {
		return nil
	}
	raw := v.raw[:min(len(v.raw), maxText)]
	if !v.escaped {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' || i+1 >= len(raw) {
			out = append(out, c)
			continue
		}
		i++
		switch raw[i] {
		case 'n', 'r', 't', 'b', 'f':
			out = append(out, map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': ' ', 'f': ' '}[raw[i]])
		case 'u':
			r, n := unicodeEscape(raw[i+1:])
			out = utf8.AppendRune(out, r)
			i += n
		default:
			out = append(out, raw[i])
		}
	}
	return out
}

// unicodeEscape decodes the digits of a \u escape and its low surrogate, and how many bytes it took.
func unicodeEscape(b []byte) (r rune, n int) {
	hex := func(b []byte) (rune, bool) {
		if len(b) < 4 {
			return 0, false
		}
		u, err := strconv.ParseUint(string(b[:4]), 16, 32)
		return rune(u), err == nil
	}
	r, ok := hex(b)
	if !ok {
		return utf8.RuneError, 0
	}
	if r >= 0xd800 && r < 0xdc00 && len(b) >= 10 && b[4] == '\\' && b[5] == 'u' {
		if low, ok := hex(b[6:]); ok && low >= 0xdc00 && low < 0xe000 {
			return (r-0xd800)<<10 | (low - 0xdc00) + 0x10000, 10
		}
	}
	return r, 4
}

// number returns the number a value stands for, also when it is written as a string.
func (v value) number() (float64, bool) {
	if v.kind != kindNumber && v.kind != kindString || len(v.raw) > 32 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	return f, err == nil
}

// filled reports whether the value says something: not null, "", {} or [].
func (v value) filled() bool {
	switch v.kind {
	case kindNone, kindFalse:
		return false
	case kindString:
		return len(bytes.TrimSpace(v.raw)) > 0
	case kindObject, kindArray:
		return len(trimLeft(v.raw[1:])) > 1
	}
	return true
}
