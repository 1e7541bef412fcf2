package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one remark about a configuration, with the place it is about.
type Problem struct {
	File         string // as the user named it; "" = the environment
	Line, Column int    // 1-based; 0 = the file as a whole
	Key          string // dotted path such as agents.defaults.model; "" = none
	Text         string // what is wrong; never holds a secret
	Hint         string // what to do instead; "" = none
}

// Warning is a remark that does not keep the configuration from being used.
type Warning = Problem

// String returns "file:line:column: key: text (hint)", leaving out what is not known.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Text)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Error is a configuration that cannot be used, with everything that is wrong with it, in the
// order of the file.
type Error struct {
	Problems []Problem
}

// Error returns one line per problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sorted returns the problems in the order of the file, without repetitions.
func sorted(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return slices.Compact(ps)
}

// nearest returns the candidate that s was probably meant to be, or "".
func nearest(s string, candidates []string) string {
	best, bestDistance := "", max(1, min(3, len(s)/4))+1
	for _, c := range candidates {
		if strings.EqualFold(s, c) {
			return c
		}
		if d := distance(strings.ToLower(s), strings.ToLower(c), bestDistance); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the optimal string alignment distance of a and b (a swap of neighbours counts as
// one), or limit when it is at least that. Both are cut to a sane length first.
func distance(a, b string, limit int) int {
	const longest = 64
	if len(a) > longest || len(b) > longest || len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	var rows [3][longest + 1]int
	before, prev, cur := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			change := prev[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return min(prev[len(b)], limit)
}

// didYouMean returns the hint for a wrong word, or the list of right ones when there are few.
func didYouMean(s string, candidates []string) string {
	if c := nearest(s, candidates); c != "" {
		return fmt.Sprintf("did you mean %q?", c)
	}
	if n := len(candidates); n > 0 && n <= 12 {
		return "known: " + strings.Join(candidates, ", ")
	}
	return ""
}
