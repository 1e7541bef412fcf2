package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/inbound"
	"understudy/session"
)

// lookBackLimit is how long an answer waits for what was said before it.
const lookBackLimit = 5 * time.Second

// longestLine bounds one line of what was said before, in characters.
const longestLine = 2000

var errLookBackLate = errors.New("the platform does not tell in time what was said before")

// remembers is how many turns of a conversation a model is shown, 0 = all (`dmHistoryLimit`).
func (a *App) remembers(to chat.Address) int {
	x, ok := a.roster.of(to)
	if !ok || to.Kind != chat.Direct {
		return 0
	}
	if p := x.plan.Load(); p != nil {
		return p.turns
	}
	return 0
}

// lookBack reads what was said in a thread before the bot came into it: once, with the first thing that
// it is told there (spec/chat.md §1.7). It is context; without it the turn goes on.
func (r *running) lookBack(ctx context.Context) {
	j := r.jobs[0]
	to := j.in.Address
	x, ok := r.a.roster.of(to)
	if !ok || to.Thread == "" || to.Thread == j.in.ID || j.parent == "" {
		return
	}
	p, h := x.plan.Load(), channels.Historian(nil)
	if h, ok = x.adapter.(channels.Historian); !ok || p == nil || p.lookBack == 0 {
		return
	}
	if !r.first(ctx) {
		return
	}
	ctx, cancel := r.a.opts.Clock.WithTimeout(ctx, lookBackLimit, errLookBackLate)
	defer cancel()
	list, err := h.Earlier(ctx, to, j.in.ID, p.lookBack)
	if err != nil {
		r.a.log.WarnContext(ctx, "thread_not_read", "turn", j.turn, "channel", to.Channel, "error", err.Error())
		return
	}
	var before []inbound.HistoryLine
	for _, m := range list {
		known := slices.ContainsFunc(j.overheard, func(l inbound.HistoryLine) bool { return l.ID == m.ID })
		if line := lineOf(m); line.Text != "" && !known {
			before = append(before, line)
		}
	}
	j.overheard = append(before, j.overheard...)
}

// first reports whether the bot was told nothing in the conversation yet. Commands and what they set tell it
// nothing, and neither does a turn of which a restart left nothing.
func (r *running) first(ctx context.Context) bool {
	j := r.jobs[0]
	s, err := r.a.sessions.Get(ctx, j.key)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return true
	case err != nil || s.LastInteractionAt.IsZero() || !j.again:
		return err == nil && s.LastInteractionAt.IsZero()
	}
	list, err := r.a.sessions.Load(ctx, s.ID)
	return err == nil && len(list) == 0
}

// lineOf is a message as a line of context.
func lineOf(m chat.Inbound) inbound.HistoryLine {
	text := m.Text
	if c := []rune(text); len(c) > longestLine {
		text = string(c[:longestLine]) + "…"
	}
	for _, f := range m.Attachments {
		text = strings.TrimSpace(text + "\n[file: " + strings.Join(strings.Fields(f.Name), " ") + "]")
	}
	return inbound.HistoryLine{ID: m.ID, Sender: m.Sender, Roles: m.Roles, Text: text, At: m.At}
}
