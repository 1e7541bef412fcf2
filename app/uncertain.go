package app

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"understudy/chat"
	"understudy/llm"
	"understudy/reply"
	"understudy/session"
)

// textUncertain stands in the conversation, for the model, where something was said that perhaps nobody
// saw (spec/chat.md §2.10).
const textUncertain = "[A note of the system: the last answer may not have arrived.]"

// lookedAt is how many decisions of a session are looked through for a turn.
const lookedAt = 20

// uncertain is told of an answer that was perhaps said. After a restart its sender hears of it. The
// conversation remembers in any case: the answer itself, since the transcript was written before, and
// that it may not have arrived.
func (a *App) uncertain(ctx context.Context, o chat.Outbound, restarted bool) {
	if restarted {
		a.inbound.Uncertain(ctx, o)
	}
	if !o.Class.Remembered() || o.TurnID == "" {
		return
	}
	key, err := a.spokenIn(ctx, o)
	if err == nil && key != "" {
		note := session.Entry{Kind: session.KindMessage, Message: llm.Text(llm.RoleUser, textUncertain), At: a.opts.Clock.Now()}
		err = a.sessions.AppendOnce(ctx, key, "uncertain-"+o.TurnID, []session.Entry{note})
	}
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		a.log.WarnContext(ctx, "uncertain_answer_not_noted", "turn", o.TurnID, "error", err.Error())
	}
}

// spokenIn finds the session that something was said in: the one whose decisions name the turn, else the
// one of the place; "" = there is none.
func (a *App) spokenIn(ctx context.Context, o chat.Outbound) (string, error) {
	list, err := a.sessions.List(ctx, session.Filter{})
	if err != nil {
		return "", err
	}
	keys := []string{a.belongs(chat.Inbound{Address: o.To}).key}
	for _, s := range list {
		if s.Address.Destination() == o.To.Destination() && !slices.Contains(keys, s.Key) {
			keys = append(keys, s.Key)
		}
	}
	there := ""
	for _, key := range keys {
		decisions, err := a.sessions.Decisions(ctx, key, lookedAt)
		switch {
		case errors.Is(err, session.ErrNotFound):
			continue
		case err != nil:
			return "", err
		case slices.ContainsFunc(decisions, func(d session.Decision) bool { return turnOf(d) == o.TurnID }):
			return key, nil
		case there == "":
			there = key
		}
	}
	return there, nil
}

// turnOf is the turn that a decision is about.
func turnOf(d session.Decision) string {
	var record reply.Decision
	if json.Unmarshal(d.Record, &record) != nil {
		return ""
	}
	return record.Turn
}
