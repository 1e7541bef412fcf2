package reply

import (
	"regexp"
	"strings"
)

// speechTag is a directive for speech; what stands between the two parts of the last kind is heard
// and not read (spec/chat.md §4.2).
var speechTag = regexp.MustCompile(`(?is)\[\[\s*tts:text\s*\]\].*?(?:\[\[\s*/tts:text\s*\]\]|$)|\[\[\s*(?:/?tts|audio_as_voice)\b[^\[\]]*\]\][ \t]*`)

// longestTag bounds how much of an unfinished text may be the beginning of a directive, in bytes.
const longestTag = 512

// readable makes text that is still being written fit to be read: no directive, and nothing of one
// that is not complete yet.
func readable(raw string) string {
	if !strings.Contains(raw, "[[") {
		return strings.TrimSuffix(raw, "[")
	}
	text := strings.TrimSuffix(speechTag.ReplaceAllString(raw, ""), "[")
	for {
		i := strings.LastIndex(text, "[[")
		if i < 0 || !maybeTag(text[i:]) {
			return text
		}
		text = text[:i]
	}
}

// maybeTag reports whether the end of an unfinished text may be the beginning of a directive.
func maybeTag(end string) bool {
	if len(end) > longestTag || strings.Contains(end, "]]") {
		return false
	}
	rest := strings.ToLower(strings.TrimLeft(end[2:], " \t/"))
	for _, tag := range [...]string{"tts", "audio_as_voice"} {
		if strings.HasPrefix(tag, rest) || strings.HasPrefix(rest, tag) {
			return true
		}
	}
	return false
}

// streamed is what the preview of a turn holds.
type streamed struct {
	raw   strings.Builder // as the model wrote it
	shown string
}

// stream adds text to the preview.
func (t *turn) stream(delta string) {
	if t.r.deps.Speak == nil { // nobody knows directives
		t.out.Stream(delta)
		return
	}
	s := &t.preview
	s.raw.WriteString(delta)
	text := readable(s.raw.String())
	if !strings.HasPrefix(text, s.shown) { // a directive was recognised late
		t.out.Restart()
		s.shown = ""
	}
	t.out.Stream(text[len(s.shown):])
	s.shown = text
}

// restream begins the preview anew with text.
func (t *turn) restream(text string) {
	t.out.Restart()
	t.preview = streamed{}
	t.stream(text)
}
