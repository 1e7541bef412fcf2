package app

import (
	"context"
	"errors"
	"strings"

	"understudy/channels/web"
	"understudy/chat"
	"understudy/llm"
	"understudy/reply"
	"understudy/session"
)

// history is the web page's past, read from the session store.
type history struct{ a *App }

// Sessions implements web.History.
func (h history) Sessions(ctx context.Context) ([]web.Session, error) {
	list, err := h.a.sessions.List(ctx, session.Filter{Limit: 500})
	if err != nil {
		return nil, err
	}
	var out []web.Session
	for _, s := range list {
		if s.Address.Channel != web.Channel {
			continue
		}
		title, err := h.title(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, web.Session{ID: s.Address.Conversation, Title: title, UpdatedAt: s.UpdatedAt})
	}
	return out, nil
}

// title is the beginning of the first thing that was said.
func (h history) title(ctx context.Context, id string) (string, error) {
	entries, err := h.a.sessions.Page(ctx, id, 0, 100)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Kind == session.KindMessage && e.Message.Role == llm.RoleUser {
			line, _, _ := strings.Cut(strings.TrimSpace(reply.Spoken(e.Message)), "\n")
			if r := []rune(line); len(r) > 60 {
				line = string(r[:60]) + "…"
			}
			return line, nil
		}
	}
	return "", nil
}

// Transcript implements web.History.
func (h history) Transcript(ctx context.Context, conversation string, limit int) ([]web.Entry, error) {
	cfg := h.a.cfg()
	address := chat.Address{Channel: web.Channel, Conversation: conversation, Kind: chat.Direct}
	s, err := h.a.sessions.Get(ctx, session.Key(cfg.DefaultAgent(), address, cfg.Session))
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := h.a.sessions.Page(ctx, s.ID, 0, limit)
	if err != nil {
		return nil, err
	}
	var out []web.Entry
	for _, e := range entries {
		text := strings.TrimSpace(reply.Spoken(e.Message))
		if e.Kind != session.KindMessage || text == "" || e.Message.Role == llm.RoleTool {
			continue
		}
		out = append(out, web.Entry{Own: e.Message.Role == llm.RoleUser, Class: chat.Assistant, Text: text, At: e.At})
	}
	return out, nil
}
