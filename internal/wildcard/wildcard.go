// Package wildcard is the one meaning of * in the patterns of the configuration.
package wildcard

import "strings"

// Match reports whether s fits pattern, in which * stands for any text, also for none and with slashes
// and line breaks in it. Every other character stands for itself: there are no classes and no escapes.
// The names that are compared may come from others, so that nothing in them may end what * stands for.
func Match(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	for {
		part, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], more
	}
}
