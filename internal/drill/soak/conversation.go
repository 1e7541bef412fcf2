package soak

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// said is a question that somebody asked.
type said struct {
	tag, id, thread string
	at              time.Time
	state           state
	looked          bool // whether its answer was lost on the way
}

// state is what became of a question.
type state int

const (
	waiting  state = iota
	answered       // whole
	told           // its sender was told that there will be no answer
	lost           // its answer reached the platform and was lost there
	ignored        // none of these: a fault of the bot
)

// conversation is a person who writes in one place.
type conversation struct {
	number int
	side   platform
	place  place
	all    []*said
	next   time.Time // when the person writes next
	burst  bool      // the next message does not wait for an answer
	left   int       // how many messages are still to be written; negative = any number
}

// tag names the next question.
func (c *conversation) tag() string { return fmt.Sprintf("q%03d.%04d", c.number, len(c.all)+1) }

// open are the questions that nothing became of yet.
func (c *conversation) open() []*said {
	var out []*said
	for _, s := range c.all {
		if s.state == waiting {
			out = append(out, s)
		}
	}
	return out
}

// speak writes the next message if it is time.
func (c *conversation) speak(r *rand.Rand, now time.Time, think time.Duration) {
	if c.left == 0 || now.Before(c.next) || !c.burst && len(c.open()) > 0 {
		return
	}
	tag := c.tag()
	text := tag + " " + styles[r.IntN(len(styles))] + " please"
	if r.IntN(10) == 0 {
		text += "\n\n" + strings.Repeat("What do you think about this? ", 40)
	}
	s := &said{tag: tag, at: now}
	s.id, s.thread = c.side.say(&c.place, text)
	c.all = append(c.all, s)
	c.left--
	if c.burst = !c.burst && r.IntN(6) == 0; c.burst {
		c.next = now.Add(upTo(r, 3*time.Second))
		return
	}
	c.next = now.Add(upTo(r, 2*think))
}

// listen looks for answers. patience is how long one may take.
func (c *conversation) listen(now time.Time, patience time.Duration, times *latencies) {
	open := c.open()
	if len(open) == 0 {
		return
	}
	transcript := c.side.transcript(c.place)
	for _, s := range open {
		begun, ended, apology := find(transcript, s)
		switch {
		case ended:
			s.state = answered
			times.add(c.side.name(), begun.Sub(s.at), now.Sub(s.at))
		case apology:
			s.state = told
		case now.Sub(s.at) < patience && (s.looked || now.Sub(s.at) < patience/4):
		case c.side.tried("end "+s.tag) > 0:
			s.state = lost // check looks again: it may be late
		case !s.looked:
			s.looked = true
		default:
			s.state = ignored
		}
	}
}

// find looks for the answer to a question, and for words that say there is none.
func find(transcript []heard, s *said) (begun time.Time, ended, apology bool) {
	after := false
	for _, h := range transcript {
		after = after || h.id == s.id
		if !h.byBot {
			continue
		}
		if begun.IsZero() && strings.Contains(h.text, "begin "+s.tag) {
			begun = h.at
		}
		ended = ended || strings.Contains(h.text, "end "+s.tag)
		apology = apology || after && h.thread == s.thread && isApology(h.text)
	}
	return begun, ended, apology
}

// isApology reports whether a text stands where an answer would have stood.
func isApology(text string) bool { return !isMarked(text) && strings.HasPrefix(text, "⚠️") }

// isMarked reports whether a text is part of an answer that is marked as one.
func isMarked(text string) bool { return opening.MatchString(text) || closing.MatchString(text) }

// String is the conversation as a person would see it.
func (c *conversation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s %s:\n", c.side.name(), c.place.kind, c.place.channel)
	for _, h := range c.side.transcript(c.place) {
		who := "person"
		if h.byBot {
			who = "bot"
		}
		text := strings.ReplaceAll(h.text, "\n", "⏎")
		if len(text) > 400 {
			text = text[:200] + " … " + text[len(text)-200:]
		}
		fmt.Fprintf(&b, "  %s %s [%s] thread=%q ref=%q: %s\n", h.at.Format("15:04:05.000"), who, h.id, h.thread, h.ref, text)
	}
	for _, s := range c.all {
		if s.state != answered {
			fmt.Fprintf(&b, "  %s, message %s of %s: %s\n", s.tag, s.id, s.at.Format("15:04:05.000"), s.state)
		}
	}
	return b.String()
}

// String names a state.
func (s state) String() string {
	return [...]string{"waiting", "answered", "told", "lost by the platform", "NOT ANSWERED"}[s]
}
