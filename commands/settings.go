package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/llm"
	"understudy/session"
)

func queueModes() []string {
	return []string{
		string(session.QueueSteer), string(session.QueueFollowup), string(session.QueueCollect), string(session.QueueInterrupt),
	}
}

func queueExamples() []string {
	return []string{"debounce:500ms", "debounce:2s", "cap:20", "drop:summarize", "drop:old", "drop:new"}
}

// queue shows or stores how messages wait (spec/chat.md §1.5). Options that are not named keep what
// was stored for them.
func (r *Registry) queue(ctx context.Context, c Call, args string) (Reply, error) {
	s, err := r.ensure(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	switch strings.ToLower(args) {
	case "":
		return Reply{Text: "📥 Queue: " + r.queueText(ctx, c, s) + "\nModes: " + strings.Join(queueModes(), ", ") + ". /queue default returns to the configuration."}, nil
	case wordDefault:
		s, err = r.deps.Sessions.Update(ctx, c.Key, func(s *session.Session) error { s.Queue = nil; return nil })
		return Reply{Text: "📥 Queue: " + r.queueText(ctx, c, s)}, err
	}
	q, err := session.ParseQueue(args)
	if err != nil {
		return Reply{}, &Refusal{"Nothing was changed: " + err.Error() + "."}
	}
	s, err = r.deps.Sessions.Update(ctx, c.Key, func(s *session.Session) error {
		raw, err := json.Marshal(merged(stored(*s), q))
		s.Queue = raw
		return err
	})
	return Reply{Text: "📥 Queue set: " + r.queueText(ctx, c, s)}, err
}

// stored reads the queue options of a session. What cannot be read counts as none: the configuration
// then holds.
func stored(s session.Session) session.Queue {
	var q session.Queue
	if len(s.Queue) > 0 && json.Unmarshal(s.Queue, &q) != nil {
		return session.Queue{}
	}
	return q
}

// merged puts options over others.
func merged(q, over session.Queue) session.Queue {
	if over.Mode != "" {
		q.Mode = over.Mode
	}
	if over.Debounce != nil {
		q.Debounce = over.Debounce
	}
	if over.Cap != 0 {
		q.Cap = over.Cap
	}
	if over.Drop != "" {
		q.Drop = over.Drop
	}
	return q
}

// queueText says what counts in a conversation, and what was chosen there.
func (r *Registry) queueText(ctx context.Context, c Call, s session.Session) string {
	own := stored(s)
	q := r.deps.Queue().For(c.To.Channel, own)
	text := q.String()
	if own.IsZero() {
		text += " (configured)"
	}
	return text + r.asCollect(c, q, cmp.Or(r.selected(ctx, c), r.deps.Models.Agent(c.Agent).Primary))
}

// asCollect says that nobody can be steered while that model answers, where it is so.
func (r *Registry) asCollect(c Call, q session.Queue, ref llm.ModelRef) string {
	if q.Mode == session.QueueSteer && !r.deps.Steerable(c.Agent, ref) {
		return " (steer acts as collect: answers have no steps here)"
	}
	return ""
}

func verboseModes() []string { return []string{"on", "full", "off"} }

// verbose shows or stores what is shown of tools.
func (r *Registry) verbose(ctx context.Context, c Call, args string) (Reply, error) {
	s, err := r.ensure(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	mode := strings.ToLower(args)
	switch {
	case mode == "":
		mode = s.Verbose
		if mode == "" {
			mode = "off"
		}
		return Reply{Text: "Verbose: " + mode + ". Modes: " + strings.Join(verboseModes(), ", ") + "."}, nil
	case !slices.Contains(verboseModes(), mode):
		return Reply{}, unknown("mode", args, verboseModes())
	}
	_, err = r.deps.Sessions.Update(ctx, c.Key, func(s *session.Session) error {
		s.Verbose = mode
		if mode == "off" {
			s.Verbose = ""
		}
		return nil
	})
	switch mode {
	case "off":
		return Reply{Text: "Verbose logging disabled."}, err
	case "full":
		return Reply{Text: "Verbose logging enabled, with what tools return."}, err
	}
	return Reply{Text: "Verbose logging enabled."}, err
}

// unknown refuses a word that is none of a few.
func unknown(what, word string, list []string) *Refusal {
	return &Refusal{fmt.Sprintf("I don't know the %s %s. There is: %s.", what, quote(word), strings.Join(list, ", "))}
}

// misused refuses a command that lacks an argument, with the way it is written.
func (r *Registry) misused(name string) *Refusal {
	s := r.specs[r.byName[name]]
	return &Refusal{"Write it like this: " + s.usage()}
}

// day is how the store writes the day of a moment in the agent's zone.
func (r *Registry) day(agent string, t time.Time) string {
	zone := r.deps.Zone(agent)
	if zone == nil {
		zone = time.UTC
	}
	return session.Day(t.In(zone))
}
