package tts

import (
	"strconv"
	"strings"
)

// What a directive may set, as it stands in chat.Speech.Options.
const (
	OptionVoice        = "voice"
	OptionSpeed        = "speed"
	OptionInstructions = "instructions"

	optionProvider = "provider"
)

// Bounds of what a directive sets.
const (
	mostOptions         = 16
	longestInstructions = 400 // bytes
	slowest, fastest    = 0.25, 4.0
)

// read adds the options of a directive: key=value, separated by blanks, commas or semicolons; a value
// may stand in quotes. What nobody knows, and what makes no sense, is ignored: a model wrote it.
func (d *directives) read(s string) {
	for range mostOptions {
		s = strings.TrimLeft(s, " \t\r\n,;")
		key, rest, ok := strings.Cut(s, "=")
		if !ok {
			return
		}
		if i := strings.LastIndexAny(strings.TrimRight(key, " "), " \t\r\n,;"); i >= 0 {
			key = key[i+1:] // words without a value stood before it
		}
		var value string
		value, s = optionValue(rest)
		key = strings.ToLower(strings.TrimSpace(key))
		if d.options == nil {
			d.options = map[string]string{}
		}
		if value, ok := checkedOption(key, value); ok {
			d.options[key] = value
		}
	}
}

// optionValue reads a value and returns what follows it.
func optionValue(s string) (value, rest string) {
	s = strings.TrimLeft(s, " ")
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		if value, rest, ok := strings.Cut(s[1:], s[:1]); ok {
			return value, rest
		}
	}
	if i := strings.IndexAny(s, " \t\r\n,;"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// checkedOption returns the value of an option that makes sense.
func checkedOption(key, value string) (string, bool) {
	value = strings.TrimSpace(value)
	switch key {
	case OptionVoice:
		return value, voiceName.MatchString(value)
	case OptionSpeed:
		f, err := strconv.ParseFloat(value, 64)
		return value, err == nil && f >= slowest && f <= fastest
	case OptionInstructions:
		value = plainWords(value)
		return value, value != "" && len(value) <= longestInstructions
	case optionProvider:
		value = strings.ToLower(value)
		return value, providerID.MatchString(value)
	}
	return "", false
}
