package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"understudy/commands"
	"understudy/gateway"
	"understudy/session"
)

// Bounds of what a call returns.
const (
	defaultListed   = 100
	defaultMessages = 20
	mostMessages    = 200
)

type sessionsListParams struct {
	Agent string `json:"agent"`
	Limit int    `json:"limit"`
}

// sessionsList is the method sessions.list.
func (c calls) sessionsList(ctx context.Context, p sessionsListParams) (any, error) {
	limit, bad := within("limit", p.Limit, defaultListed, mostListed)
	if bad != nil {
		return nil, bad
	}
	list, err := c.sessions.list(ctx, p.Agent, limit)
	if err != nil {
		return nil, err
	}
	for i := range list {
		c.live(&list[i])
	}
	return map[string]any{"sessions": list}, nil
}

// live adds what only the running bot knows.
func (c calls) live(i *SessionInfo) {
	state := c.a.lanes.State(i.Key)
	i.Running, i.Waiting = state.Active, state.Queued
}

// within checks a number that may be left out.
func within(name string, n, normal, most int) (int, error) {
	switch {
	case n == 0:
		return normal, nil
	case n < 0 || n > most:
		return 0, gateway.BadParam(name, fmt.Sprintf("must be between 1 and %d", most))
	}
	return n, nil
}

type sessionsGetParams struct {
	Session  string `json:"session" rpc:"required"`
	Messages *int   `json:"messages"`
	Before   int    `json:"before"`
}

// SessionView is the result of sessions.get.
type SessionView struct {
	Session  SessionInfo   `json:"session"`
	Messages []MessageInfo `json:"messages"`
}

// sessionsGet is the method sessions.get.
func (c calls) sessionsGet(ctx context.Context, p sessionsGetParams) (any, error) {
	limit := defaultMessages
	if p.Messages != nil {
		if limit = *p.Messages; limit < 0 || limit > mostMessages {
			return nil, gateway.BadParam("messages", fmt.Sprintf("must be between 0 and %d", mostMessages))
		}
	}
	if p.Before < 0 {
		return nil, gateway.BadParam("before", "must be the seq of a message")
	}
	s, err := c.find(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	v := SessionView{Session: c.sessions.info(ctx, s)}
	c.live(&v.Session)
	v.Messages, err = c.sessions.messages(ctx, s.ID, int64(p.Before), limit)
	return v, err
}

type sessionsPatchParams struct {
	Session string  `json:"session" rpc:"required"`
	Model   *string `json:"model"`
	Profile *string `json:"profile"`
	Think   *string `json:"think"`
	Queue   *string `json:"queue"`
}

// wordDefault is what takes a choice back, as in the commands.
const wordDefault = "default"

// sessionsPatch is the method sessions.patch: each change is what the command of its name does. All are
// checked before the first is made, so that a refusal changes nothing.
func (c calls) sessionsPatch(ctx context.Context, p sessionsPatchParams) (any, error) {
	if p.Model == nil && p.Profile == nil && p.Think == nil && p.Queue == nil {
		return nil, gateway.BadParam("model", "there is nothing to change: give model, profile, think or queue")
	}
	if err := errors.Join(c.checkThink(p.Think), checkQueue(p.Queue)); err != nil {
		return nil, firstOf(err)
	}
	s, err := c.find(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	if !c.a.lanes.State(s.Key).Active { // a profile ends with the session, which the next message would end
		c.a.renew(ctx, "", s.AgentID, s.Key, s.Address)
	}
	var said []string
	if p.Model != nil || p.Profile != nil {
		text, err := c.selectModel(ctx, s, p.Model, p.Profile)
		if err != nil {
			return nil, err
		}
		said = append(said, text)
	}
	for _, x := range []struct {
		command string
		value   *string
	}{{"/think ", p.Think}, {"/queue ", p.Queue}} {
		if x.value == nil {
			continue
		}
		text, err := c.command(ctx, s, x.command+*x.value)
		if err != nil {
			return nil, err
		}
		said = append(said, text)
	}
	if s, err = c.a.sessions.Get(ctx, s.Key); err != nil {
		return nil, rpcError(err)
	}
	if p.Think != nil && s.Think != noDefault(*p.Think) {
		return nil, fmt.Errorf("think stayed %q", s.Think) // the command's log says why
	}
	info := c.sessions.info(ctx, s)
	c.live(&info)
	return map[string]any{"session": info, "said": said}, nil
}

// firstOf returns the first error of several that is fit for a caller.
func firstOf(err error) error {
	var told *gateway.RPCError
	if errors.As(err, &told) {
		return told
	}
	return err
}

// noDefault is how a session stores a level.
func noDefault(level string) string {
	if level = strings.ToLower(level); level == wordDefault {
		return ""
	}
	return level
}

// checkThink checks a level against those of the command.
func (c calls) checkThink(level *string) error {
	if level == nil {
		return nil
	}
	inv, ok := c.a.commands.Match("/think")
	if !ok || len(inv.Spec.Args) == 0 {
		return errors.New("there is no command /think")
	}
	if levels := inv.Spec.Args[0].Choices; !slices.Contains(levels, strings.ToLower(*level)) {
		return gateway.BadParam("think", "must be one of "+strings.Join(levels, ", "))
	}
	return nil
}

// checkQueue reads queue options as the command does.
func checkQueue(text *string) error {
	if text == nil || strings.EqualFold(*text, wordDefault) {
		return nil
	}
	if strings.TrimSpace(*text) == "" || strings.ContainsAny(*text, "\r\n") {
		return gateway.BadParam("queue", "must be written as behind /queue")
	}
	if _, err := session.ParseQueue(*text); err != nil {
		return gateway.BadParam("queue", err.Error())
	}
	return nil
}

// selectModel selects a model, with the profile that may serve it or with any.
func (c calls) selectModel(ctx context.Context, s session.Session, model, profile *string) (string, error) {
	var text string
	switch {
	case model != nil:
		text = strings.TrimSpace(*model)
	case s.Override.User():
		text = s.Override.Model.String()
	default:
		text = wordDefault
	}
	if text == "" {
		return "", gateway.BadParam("model", "must be a reference, an alias or default")
	}
	if profile != nil {
		if *profile == "" || strings.Contains(text, "@") {
			return "", gateway.BadParam("profile", "must be a profile's id, and stand in one place only")
		}
		text += "@" + *profile
	}
	input, err := json.Marshal(map[string]string{"model": text})
	if err != nil {
		return "", err
	}
	said, err := c.a.commands.SessionStatus().Run(ctx, commands.ToolUse{Agent: s.AgentID, Key: s.Key, Input: input, By: []commands.Call{ownerCall(s)}})
	return said, rpcError(err)
}

type sessionParams struct {
	Session string `json:"session" rpc:"required"`
}

// sessionsReset is the method sessions.reset: what /reset does.
func (c calls) sessionsReset(ctx context.Context, p sessionParams) (any, error) {
	s, err := c.find(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	var said string
	var now session.Session
	err = c.inLane(ctx, s.Key, func(ctx context.Context) (err error) {
		if said, err = c.command(ctx, s, "/reset"); err != nil {
			return err
		}
		if now, err = c.a.sessions.Get(ctx, s.Key); err == nil && now.ID == s.ID {
			err = errors.New("the session was not reset")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"session": c.sessions.info(ctx, now), "said": []string{said}}, nil
}

// sessionsDelete is the method sessions.delete. It cannot be undone.
func (c calls) sessionsDelete(ctx context.Context, p sessionParams) (any, error) {
	s, err := c.find(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	err = c.inLane(ctx, s.Key, func(ctx context.Context) error { return c.a.sessions.Delete(ctx, s.Key) })
	if err != nil {
		return nil, err
	}
	return map[string]any{"deleted": s.Key}, nil
}

type sessionsCleanupParams struct {
	DryRun bool `json:"dryRun"`
}

// RemovalInfo is a session, or an ended transcript of one, that goes.
type RemovalInfo struct {
	Key       string `json:"key"`
	SessionID string `json:"sessionId"`
	Why       string `json:"why"`
}

// sessionsCleanup is the method sessions.cleanup.
func (c calls) sessionsCleanup(ctx context.Context, p sessionsCleanupParams) (any, error) {
	gone, err := cleanup(ctx, c.a.sessions, p.DryRun)
	return map[string]any{"removed": gone, "dryRun": p.DryRun}, err
}

func cleanup(ctx context.Context, store *session.Store, dryRun bool) ([]RemovalInfo, error) {
	gone, err := store.Cleanup(ctx, session.Maintenance{}, dryRun)
	out := make([]RemovalInfo, len(gone))
	for i, r := range gone {
		out[i] = RemovalInfo(r)
	}
	return out, err
}

// forgetSessions removes the sessions that nobody talks in (spec/chat.md §1.9).
func (a *App) forgetSessions(ctx context.Context) error {
	gone, err := a.sessions.Cleanup(ctx, session.Maintenance{}, false)
	if len(gone) > 0 {
		a.log.InfoContext(ctx, "sessions_removed", "count", len(gone))
	}
	return err
}
