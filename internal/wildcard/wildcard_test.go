package wildcard_test

import (
	"testing"

	"pgregory.net/rapid"

	"understudy/internal/wildcard"
)

func TestAStarStandsForAnything(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true},
		{"*", "files/write", true},
		{"*", "two\nlines", true},
		{"admin*", "admin/x", true},
		{"admin*", "xadmin", false},
		{"a*b*c", "a/b/c/b/c", true},
		{"a*a", "a", false},
		{"[a-z]", "b", false},
		{`\*`, "*", false},
		{"?", "x", false},
		{"", "", true},
		{"", "x", false},
	} {
		if got := wildcard.Match(c.pattern, c.text); got != c.want {
			t.Errorf("%q and %q: %v", c.pattern, c.text, got)
		}
	}
}

// TestMatchAgreesWithTheDefinition compares it with the plain reading of *.
func TestMatchAgreesWithTheDefinition(t *testing.T) {
	var slow func(p, s string) bool
	slow = func(p, s string) bool {
		switch {
		case p == "":
			return s == ""
		case p[0] == '*':
			return slow(p[1:], s) || (s != "" && slow(p, s[1:]))
		}
		return s != "" && s[0] == p[0] && slow(p[1:], s[1:])
	}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.StringMatching(`[ab*/]{0,8}`).Draw(t, "pattern")
		s := rapid.StringMatching(`[ab/]{0,8}`).Draw(t, "text")
		if wildcard.Match(p, s) != slow(p, s) {
			t.Fatalf("Match(%q, %q) = %v", p, s, wildcard.Match(p, s))
		}
	})
}
