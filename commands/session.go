package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"understudy/session"
)

// fresh begins a new conversation. An argument that names a model selects it; any other text is the
// first message (spec/chat.md §1.3).
func (r *Registry) fresh(ctx context.Context, c Call, args string) (Reply, error) {
	if args != "" && !strings.ContainsAny(args, " \n\t") {
		if choice, err := r.resolve(ctx, c, args); err == nil && !choice.Guessed {
			return r.freshOn(ctx, c, args)
		}
	}
	reply, err := r.restart(ctx, c, "🆕 New session.")
	reply.Follow = args
	return reply, err
}

func (r *Registry) freshOn(ctx context.Context, c Call, args string) (Reply, error) {
	if _, err := r.restart(ctx, c, ""); err != nil {
		return Reply{}, err
	}
	_, err := r.choose(ctx, c, args)
	var no *refusal
	switch {
	case errors.As(err, &no):
		return Reply{Text: "🆕 New session. " + no.text}, nil
	case err != nil:
		return Reply{}, err
	}
	s, _, err := r.session(ctx, c)
	return Reply{Text: fmt.Sprintf("🆕 New session on %s.", r.selection(s, c.Agent).Ref)}, err
}

func (r *Registry) reset(ctx context.Context, c Call, _ string) (Reply, error) {
	return r.restart(ctx, c, "🆕 Reset.")
}

// restart ends the transcript. A model the user chose stays, and the reply says how to clear it.
func (r *Registry) restart(ctx context.Context, c Call, title string) (Reply, error) {
	if _, _, err := r.session(ctx, c); err != nil {
		return Reply{}, err
	}
	if _, err := r.deps.Sessions.Reset(ctx, c.Key); err != nil {
		return Reply{}, err
	}
	s, _, err := r.session(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	text := fmt.Sprintf("%s Model: %s.", title, r.selection(s, c.Agent).Ref)
	if s.Override.User() {
		text += " You chose it earlier; /model default returns to the configured one."
	}
	return Reply{Text: text}, nil
}

// stop ends the sender's waiting messages and the running answer; the owner stops anybody's.
func (r *Registry) stop(_ context.Context, c Call, _ string) (Reply, error) {
	owner := c.In.Sender.ID
	st := r.deps.Lanes.State(c.Key)
	if c.Owner {
		owner = ""
	} else if st.Active && st.Owner != owner {
		return Reply{Text: "Somebody else's answer is running; only they or the bot owner can stop it."}, nil
	}
	if queued, active := r.deps.Lanes.Stop(c.Key, owner); queued == 0 && !active {
		return Reply{Text: "Nothing is running."}, nil
	}
	return Reply{Text: "⏹ Stopped."}, nil
}

func (r *Registry) compact(ctx context.Context, c Call, focus string) (Reply, error) {
	if _, _, err := r.session(ctx, c); err != nil {
		return Reply{}, err
	}
	before, after, err := r.deps.Compact(ctx, c, focus)
	switch {
	case err != nil:
		r.deps.Log.WarnContext(ctx, "compaction_failed", "session", c.Key, "error", err.Error())
		return Reply{Text: "🧹 The conversation could not be shortened; nothing was lost. Please try again later."}, nil
	case after >= before:
		return Reply{Text: "Nothing to compact."}, nil
	}
	s, err := r.deps.Sessions.Get(ctx, c.Key)
	return Reply{Text: fmt.Sprintf("🧹 Compacted: %d → %d tokens (compactions: %d).", before, after, s.Compactions)}, err
}

// thinkLevels are the words that /think takes.
func thinkLevels() []string { return []string{"off", "minimal", "low", "medium", "high", "xhigh"} }

func (r *Registry) think(ctx context.Context, c Call, args string) (Reply, error) {
	s, _, err := r.session(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	level := strings.ToLower(args)
	switch {
	case level == "":
		if s.Think == "" {
			return Reply{Text: "Thinking level: the model's default. Levels: " + strings.Join(thinkLevels(), ", ") + "."}, nil
		}
		return Reply{Text: "Thinking level: " + s.Think + "."}, nil
	case level == "default":
		level = ""
	case !slices.Contains(thinkLevels(), level):
		return Reply{Text: fmt.Sprintf("I don't know the level %q. Levels: %s, default.", args, strings.Join(thinkLevels(), ", "))}, nil
	}
	if _, err = r.deps.Sessions.Update(ctx, c.Key, func(s *session.Session) error { s.Think = level; return nil }); err != nil {
		return Reply{}, err
	}
	switch level {
	case "":
		return Reply{Text: "Thinking level set to the model's default."}, nil
	case "off":
		return Reply{Text: "Thinking disabled."}, nil
	}
	return Reply{Text: "Thinking level set to " + level + "."}, nil
}

func (r *Registry) whoami(_ context.Context, c Call, _ string) (Reply, error) {
	owner := "no"
	if c.Owner {
		owner = "yes"
	}
	lines := []string{"channel: " + c.To.Channel}
	for _, x := range [][2]string{{"account", c.To.Account}, {"sender id", c.In.Sender.ID}, {"chat id", c.To.Conversation}, {"thread id", c.To.Thread}, {"session", c.Key}} {
		if x[1] != "" {
			lines = append(lines, x[0]+": "+x[1])
		}
	}
	return Reply{Text: strings.Join(append(lines, "owner: "+owner), "\n")}, nil
}

func (r *Registry) simulate(_ context.Context, _ Call, args string) (Reply, error) {
	text, err := r.deps.Sim(args)
	if err != nil {
		return Reply{Text: err.Error()}, nil
	}
	return Reply{Text: text}, nil
}
