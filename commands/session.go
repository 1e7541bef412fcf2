package commands

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"understudy/session"
)

// fresh begins a new conversation. An argument that names a model selects it; any other text is the
// first message (spec/chat.md §1.3). A choice that is refused leaves the conversation as it is.
func (r *Registry) fresh(ctx context.Context, c Call, args string) (Reply, error) {
	if r.namesModel(ctx, c, args) {
		text, err := r.freshOn(ctx, c, args)
		return Reply{Text: text}, err
	}
	text, err := r.begin(ctx, c)
	return Reply{Text: text, Follow: args}, err
}

// checkFresh returns what refuses a model that /new is to begin with.
func (r *Registry) checkFresh(ctx context.Context, c Call, args string) error {
	if !r.namesModel(ctx, c, args) {
		return nil
	}
	_, err := r.target(ctx, c, args)
	return err
}

// namesModel reports whether the argument of /new can only be meant as a model: one word that is a
// reference, an alias or "default". What would need guessing, or a number, is a message.
func (r *Registry) namesModel(ctx context.Context, c Call, args string) bool {
	word, _, _ := strings.Cut(args, "@")
	if word == "" || len(strings.Fields(args)) != 1 {
		return false
	}
	if strings.EqualFold(word, "default") {
		return true
	}
	if _, err := strconv.Atoi(word); err == nil {
		return false
	}
	for _, text := range []string{args, word} { // a model with a profile that does not exist is no message
		if choice, err := r.deps.Models.Resolve(ctx, c.Agent, text); err == nil && !choice.Guessed {
			return true
		}
	}
	return false
}

func (r *Registry) freshOn(ctx context.Context, c Call, args string) (string, error) {
	t, err := r.target(ctx, c, args)
	if err != nil {
		return "", err
	}
	if _, err := r.ensure(ctx, c); err != nil {
		return "", err
	}
	if _, err := r.deps.Sessions.Reset(ctx, c.Key); err != nil {
		return "", err
	}
	if _, err := r.apply(ctx, c, t); err != nil {
		return "", err
	}
	text := fmt.Sprintf("🆕 New session on %s", t.Ref)
	if t.Profile != "" {
		text += " using profile " + string(t.Profile)
	}
	return text + ".", nil
}

func (r *Registry) reset(ctx context.Context, c Call, _ string) (Reply, error) {
	text, err := r.begin(ctx, c)
	return Reply{Text: text}, err
}

// begin ends the transcript. A model the user chose stays, and the reply says how to clear it.
func (r *Registry) begin(ctx context.Context, c Call) (string, error) {
	before, err := r.ensure(ctx, c)
	if err != nil {
		return "", err
	}
	if _, err := r.deps.Sessions.Reset(ctx, c.Key); err != nil {
		return "", err
	}
	v, err := r.look(ctx, c)
	if err != nil {
		return "", err
	}
	text := "🆕 New session."
	if !v.sel.Ref.IsZero() {
		text = fmt.Sprintf("🆕 New session. Model: %s.", v.sel.Ref)
	}
	switch {
	case v.inherited():
		text += " It is that of the conversation this thread belongs to; /model default clears it here."
	case v.s.Override.User():
		text += " You chose it earlier; /model default clears it."
	}
	if before.Pin.Source == session.SourceUser {
		text += " The profile is no longer locked."
	}
	return text, nil
}

// stop ends the sender's waiting messages and the answer that is written for them; the owner stops
// anybody's.
func (r *Registry) stop(_ context.Context, c Call, _ string) (Reply, error) {
	owner := c.In.Sender.ID
	if c.Owner {
		owner = ""
	} else if owner == "" {
		return Reply{Text: "I cannot tell which messages are yours; the bot owner can stop the answer."}, nil
	}
	queued, active := r.deps.Lanes.Stop(c.Key, owner)
	switch {
	case queued > 0 || active:
		return Reply{Text: "⏹ Stopped."}, nil
	case r.deps.Lanes.State(c.Key).Active:
		return Reply{Text: "Somebody else's answer is running; only they or the bot owner can stop it."}, nil
	}
	return Reply{Text: "Nothing is running."}, nil
}

// compact shortens the conversation. It is the work on the summary that ends with ctx; what is stored is
// stored all the same.
func (r *Registry) compact(ctx context.Context, c Call, focus string) (Reply, error) {
	free := context.WithoutCancel(ctx)
	if _, err := r.ensure(free, c); err != nil {
		return Reply{}, err
	}
	before, after, err := r.deps.Compact(ctx, c, focus)
	switch {
	case err != nil && ctx.Err() != nil:
		return Reply{Text: "🧹 Stopped; the conversation is as it was."}, nil
	case err != nil:
		r.deps.Log.WarnContext(ctx, "compaction_failed", "session", c.Key, "error", err.Error())
		return Reply{Text: "🧹 The conversation could not be shortened; nothing was lost. Please try again later."}, nil
	case after >= before:
		return Reply{Text: "Nothing to compact."}, nil
	}
	s, err := r.deps.Sessions.Get(free, c.Key)
	return Reply{Text: fmt.Sprintf("🧹 Compacted: %d → %d tokens (compactions: %d).", before, after, s.Compactions)}, err
}

// thinkLevels are the words that /think takes.
func thinkLevels() []string { return []string{"off", "minimal", "low", "medium", "high", "xhigh"} }

func (r *Registry) think(ctx context.Context, c Call, args string) (Reply, error) {
	s, err := r.ensure(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	level := strings.ToLower(args)
	switch levels := strings.Join(thinkLevels(), ", "); {
	case level == "" && s.Think == "":
		return Reply{Text: "Thinking level: the model's default. Levels: " + levels + "."}, nil
	case level == "":
		return Reply{Text: fmt.Sprintf("Thinking level: %s. Levels: %s, default.", s.Think, levels)}, nil
	case level == "default":
		level = ""
	case !slices.Contains(thinkLevels(), level):
		return Reply{Text: fmt.Sprintf("I don't know the level %s. Levels: %s, default.", quote(args), levels)}, nil
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
	for _, x := range [][2]string{
		{"account", c.To.Account}, {"sender id", c.In.Sender.ID}, {"chat id", c.To.Conversation}, {"thread id", c.To.Thread}, {"session", c.Key},
	} {
		if x[1] != "" {
			lines = append(lines, x[0]+": "+code(x[1]))
		}
	}
	return Reply{Text: strings.Join(append(lines, "owner: "+owner), "\n")}, nil
}

func (r *Registry) simulate(ctx context.Context, c Call, args string) (Reply, error) {
	text, err := r.deps.Sim(ctx, c.Agent, args)
	if err != nil {
		return Reply{Text: err.Error()}, nil
	}
	return Reply{Text: text}, nil
}
