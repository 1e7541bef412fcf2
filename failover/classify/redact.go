package classify

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxMessage = 300 // runes of Failure.Message
	maxCode    = 64  // bytes of Failure.Code
	mask       = "***"
)

// keyPrefixes begin the keys and tokens that hosts hand out.
var keyPrefixes = [...]string{
	"sk-", "sk_", "pk-", "rk-", "xai-", "gsk_", "AIza", "ya29.", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "github_pat_", "AKIA", "ASIA", "eyJ", "pplx-", "r8_", "fw_", "csk-",
	"nvapi-", "tgp_", "xox", "ak-", "AQ.", "glpat-", "sess-", "tok_", "Bearer-",
}

// redact returns msg fit for logs: one line, at most maxMessage runes, without anything that could
// be a credential. It errs on the side of hiding.
func redact(msg []byte) string {
	text := strings.ToValidUTF8(string(msg[:min(len(msg), 6*maxMessage)]), "")
	var b strings.Builder
	b.Grow(min(len(text), 4*maxMessage))
	hide := 0 // how many of the next words may be a credential that was announced
	for i := 0; i < len(text) && b.Len() < 4*maxMessage; {
		n := 0
		for i+n < len(text) && isSecretByte(text[i+n]) {
			n++
		}
		if n == 0 {
			r, size := utf8.DecodeRuneInString(text[i:])
			if i += size; !unicode.IsSpace(r) && !unicode.IsControl(r) {
				b.WriteRune(r)
			} else if s := b.String(); s != "" && s[len(s)-1] != ' ' {
				b.WriteByte(' ')
			}
			continue
		}
		run := text[i : i+n]
		switch {
		case isKey(run), hide > 0 && looksRandom(run):
			b.WriteString(mask)
		default:
			b.WriteString(run)
		}
		hide--
		if announcesKey(run) {
			hide = 3
		}
		i += n
	}
	return truncate(strings.TrimSpace(b.String()))
}

func isSecretByte(c byte) bool {
	return isWordByte(c) || c == '-' || c == '.' || c == '+' || c == '/' || c == '~'
}

// isKey tells whether a run is a credential by its look.
func isKey(run string) bool {
	if len(run) < 10 {
		return false
	}
	for _, p := range keyPrefixes {
		if len(run) >= len(p)+8 && strings.HasPrefix(run, p) {
			return true
		}
	}
	// A long stretch of mixed letters and digits without separators.
	for part := range strings.FieldsFuncSeq(run, func(r rune) bool { return r == '-' || r == '.' || r == '/' }) {
		if len(part) >= 24 && mixed(part) {
			return true
		}
	}
	return false
}

func looksRandom(run string) bool { return len(run) >= 12 && mixed(run) }

func mixed(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ContainsFunc(s, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' })
}

// announcements are the ends of words behind which a credential may stand: "Bearer x", "key=x",
// "access_token: x".
var announcements = [...]string{"bearer", "key", "token", "secret", "password", "authorization", "basic", "signature"}

func announcesKey(run string) bool {
	for _, w := range announcements {
		if len(run) >= len(w) && strings.EqualFold(run[len(run)-len(w):], w) {
			return true
		}
	}
	return false
}

// truncate cuts s to maxMessage runes.
func truncate(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxMessage {
			return s[:i]
		}
	}
	return s
}
