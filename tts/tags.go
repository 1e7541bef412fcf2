package tts

import "strings"

// Bounds of directives, in bytes.
const (
	longestTag    = 512      // what is longer is text
	longestSpoken = 64 << 10 // between [[tts:text]] and its end; the rest is not spoken
)

// Stripper takes the directives for speech out of text that arrives in pieces, so that nobody ever sees
// one, or half of one (spec/chat.md §4.2):
//
//	[[tts]]  [[tts:voice=nova speed=1.2]]     this answer is to be spoken, in such a way
//	[[tts:text]] … [[/tts:text]]              is spoken and not shown
//	[[audio_as_voice]]                        attached sound is a voice note
//
// However a text is cut into pieces, what comes out is the same. The zero value is ready; it is for one
// text and not safe for concurrent use.
type Stripper struct {
	pending string // may be the beginning of a directive
	blank   bool   // blanks behind a directive are dropped
	inside  bool   // between [[tts:text]] and its end
	found   directives
}

// directives is what a text asks for.
type directives struct {
	tagged  bool
	voice   bool // [[audio_as_voice]]
	options map[string]string
	spoken  strings.Builder
}

// Write takes the next piece and returns what can be shown by now.
func (s *Stripper) Write(delta string) (visible string) {
	return s.cut(s.pending+delta, false)
}

// Close ends the text and returns what was held back and is to be shown after all.
func (s *Stripper) Close() (visible string) {
	return s.cut(s.pending, true)
}

// cut handles as much of text as can be decided and keeps the rest.
func (s *Stripper) cut(text string, last bool) string {
	var out strings.Builder
	s.pending = ""
	for text != "" {
		if s.blank {
			if text = strings.TrimLeft(text, " \t"); text == "" {
				break
			}
			s.blank = false
		}
		i := strings.IndexByte(text, '[')
		if i < 0 {
			i = len(text)
		}
		s.say(&out, text[:i])
		if text = text[i:]; text == "" {
			break
		}
		tag, size, undecided := readTag(text)
		switch {
		case undecided && !last:
			s.pending = text
			return out.String()
		case size == 0:
			s.say(&out, text[:1])
			text = text[1:]
		default:
			s.obey(tag)
			text = text[size:]
		}
	}
	return out.String()
}

// say is for text outside of directives.
func (s *Stripper) say(out *strings.Builder, text string) {
	switch {
	case !s.inside:
		out.WriteString(text)
	case s.found.spoken.Len()+len(text) <= longestSpoken:
		s.found.spoken.WriteString(text)
	}
}

// obey does what a directive says.
func (s *Stripper) obey(tag string) {
	switch {
	case s.inside && tag == "/tts:text":
		s.inside = false
	case s.inside: // nothing in there has a meaning
	case tag == "tts:text":
		s.inside, s.found.tagged = true, true
		if s.found.spoken.Len() > 0 {
			s.found.spoken.WriteByte('\n')
		}
	case strings.HasPrefix(tag, "/"):
		s.blank = true
	case strings.HasPrefix(tag, tagVoice):
		s.blank, s.found.voice = true, true
	default:
		s.blank, s.found.tagged = true, true
		s.found.read(strings.TrimPrefix(tag[len(tagSpeak):], ":"))
	}
}

const (
	tagSpeak = "tts"
	tagVoice = "audio_as_voice"
)

// readTag reads the directive that text, which begins with [, begins with: its content and its size.
// Size 0 = there is none. Undecided = more text could make one.
func readTag(text string) (tag string, size int, undecided bool) {
	if len(text) < 2 {
		return "", 0, true
	}
	if text[1] != '[' {
		return "", 0, false
	}
	body := text[2:min(len(text), longestTag)]
	end := strings.IndexAny(body, "[]")
	if end < 0 {
		return "", 0, len(text) < longestTag && couldBeTag(body)
	}
	closed := body[end:]
	switch {
	case body[end] != ']' || !isTag(body[:end]) || len(closed) > 1 && closed[1] != ']':
		return "", 0, false
	case len(closed) == 1:
		return "", 0, len(text) < longestTag
	}
	tag = strings.TrimSpace(body[:end])
	if strings.EqualFold(tag, "tts:text") || strings.EqualFold(tag, "/tts:text") {
		tag = strings.ToLower(tag)
	} else if strings.HasPrefix(strings.ToLower(tag), tagVoice) {
		tag = tagVoice
	} else if tag[0] == '/' {
		tag = "/"
	}
	return tag, 2 + end + 2, false
}

// isTag reports whether what stands between the brackets is a directive.
func isTag(body string) bool {
	name := strings.TrimSpace(body)
	closing := strings.HasPrefix(name, "/")
	name = strings.TrimPrefix(name, "/")
	return hasName(name, tagSpeak) || !closing && hasName(name, tagVoice)
}

// hasName reports whether s begins with the whole word name, in any case.
func hasName(s, name string) bool {
	return len(s) >= len(name) && strings.EqualFold(s[:len(name)], name) && (len(s) == len(name) || !isWord(s[len(name)]))
}

// couldBeTag reports whether something may follow body that makes it the content of a directive.
func couldBeTag(body string) bool {
	name := strings.TrimLeft(body, " \t\r\n")
	closing := strings.HasPrefix(name, "/")
	name = strings.TrimPrefix(name, "/")
	return beginsLike(name, tagSpeak) || !closing && beginsLike(name, tagVoice)
}

func beginsLike(s, name string) bool {
	if len(s) <= len(name) {
		return strings.EqualFold(s, name[:len(s)])
	}
	return hasName(s, name)
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// strip takes the directives out of a whole text.
func strip(text string) (visible string, found *directives) {
	var s Stripper
	visible = s.Write(text)
	visible += s.Close()
	return visible, &s.found
}
