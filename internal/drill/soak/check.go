package soak

import (
	"fmt"
	"regexp"
	"slices"
)

// sight is where the marks of one answer stand in a transcript.
type sight struct{ begins, ends []int }

// check looks at a whole conversation and returns what must not be, and how many half answers stay
// because the platform lost the receipt of a preview.
func (c *conversation) check(order func(tag string) int) (problems []string, halves int) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	transcript := c.side.transcript(c.place)
	seen := map[string]*sight{}
	for i, h := range transcript {
		if !h.byBot {
			continue
		}
		note := func(re *regexp.Regexp, add func(*sight)) {
			for _, m := range re.FindAllStringSubmatch(h.text, -1) {
				if seen[m[1]] == nil {
					seen[m[1]] = &sight{}
				}
				add(seen[m[1]])
			}
		}
		note(opening, func(s *sight) { s.begins = append(s.begins, i) })
		note(closing, func(s *sight) { s.ends = append(s.ends, i) })
	}
	byTag := map[string]*said{}
	for _, s := range c.all {
		byTag[s.tag] = s
	}
	for tag, x := range seen {
		s := byTag[tag]
		if tag == stays {
			halves += len(x.begins)
			continue
		}
		if s == nil {
			bad("%s does not belong here", tag)
			continue
		}
		if len(x.ends) > 1 {
			bad("%s is answered %d times", tag, len(x.ends))
		}
		for _, i := range slices.Concat(x.begins, x.ends) {
			if transcript[i].thread != s.thread {
				bad("%s is answered in thread %q and not in %q", tag, transcript[i].thread, s.thread)
			}
		}
		halves += max(len(x.begins)-1, 0)
		if len(x.ends) == 1 && len(x.begins) == 0 && c.side.tried("begin "+tag) == 0 {
			bad("the answer to %s has no beginning", tag)
		}
	}
	for _, s := range c.all {
		x := seen[s.tag]
		switch {
		case s.state == ignored:
			bad("%s is not answered", s.tag)
		case s.state == answered && (x == nil || len(x.ends) == 0):
			bad("the answer to %s has gone", s.tag)
		case s.state == lost && x != nil && len(x.ends) > 0:
			s.state = answered // late
		}
	}
	problems = append(problems, c.ordered(seen, transcript, order)...)
	return problems, halves
}

// ordered checks that answers of one thread stand in the order in which the model was asked, and that
// none stands inside another. A half answer whose receipt was lost does not count.
func (c *conversation) ordered(seen map[string]*sight, transcript []heard, order func(tag string) int) (problems []string) {
	type span struct {
		tag, thread string
		from, to    int
		turn        int
	}
	var spans []span
	for tag, x := range seen {
		if len(x.begins) != 1 || len(x.ends) != 1 {
			continue
		}
		spans = append(spans, span{tag, transcript[x.ends[0]].thread, x.begins[0], x.ends[0], order(tag)})
	}
	slices.SortFunc(spans, func(a, b span) int { return a.to - b.to })
	for i := 1; i < len(spans); i++ {
		a, b := spans[i-1], spans[i]
		if a.thread != b.thread {
			continue
		}
		if a.turn > b.turn && a.to != b.to {
			problems = append(problems, fmt.Sprintf("%s was asked after %s and is answered before", a.tag, b.tag))
		}
		if b.from < a.to && a.from != b.from {
			problems = append(problems, fmt.Sprintf("%s stands inside the answer to %s", b.tag, a.tag))
		}
	}
	return problems
}

// stays is what a model says before it fails in the middle of a stream. It must not stay, but where
// the platform lost the receipt of the preview that shows it.
const stays = "q999.9999"
