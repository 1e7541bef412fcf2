package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"understudy/channels/web"
	"understudy/chat"
	"understudy/inbound"
	"understudy/llm"
	"understudy/reply"
	"understudy/session"
)

// Bounds of the list of the page's conversations. The title is looked for where a conversation
// begins: transcripts only grow, so what was found once stays true.
const (
	mostListed  = 500
	titleWithin = 8
	titleLength = 60 // runes
	mostTitles  = 2000
)

// history is the web page's past, read from the session store.
type history struct {
	a *App

	mu     sync.Mutex
	titles map[string]string // by session id
}

// Sessions implements web.History. A conversation in which nothing is remembered has nothing to show.
func (h *history) Sessions(ctx context.Context) ([]web.Session, error) {
	list, err := h.a.sessions.List(ctx, session.Filter{Channel: web.Channel, Limit: mostListed})
	if err != nil {
		return nil, err
	}
	var out []web.Session
	for _, s := range list {
		title, err := h.title(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		if title == "" {
			entries, err := h.a.sessions.Page(ctx, s.ID, 0, 1)
			if err != nil {
				return nil, err
			}
			if len(entries) == 0 {
				continue
			}
		}
		out = append(out, web.Session{ID: s.Address.Conversation, Title: title, UpdatedAt: s.UpdatedAt})
	}
	return out, nil
}

// title is the beginning of the first thing that was said.
func (h *history) title(ctx context.Context, id string) (string, error) {
	h.mu.Lock()
	known, ok := h.titles[id]
	h.mu.Unlock()
	if ok {
		return known, nil
	}
	entries, err := h.a.sessions.Page(ctx, id, titleWithin+1, titleWithin)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Kind != session.KindMessage || e.Message.Role != llm.RoleUser {
			continue
		}
		line, _, _ := strings.Cut(strings.TrimSpace(reply.Spoken(e.Message)), "\n")
		if r := []rune(line); len(r) > titleLength {
			line = string(r[:titleLength]) + "…"
		}
		h.keep(id, line)
		return line, nil
	}
	return "", nil
}

// keep remembers a title; when there are too many all are forgotten, which costs one more look.
func (h *history) keep(id, title string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.titles == nil || len(h.titles) >= mostTitles {
		h.titles = map[string]string{}
	}
	h.titles[id] = title
}

// Transcript implements web.History.
func (h *history) Transcript(ctx context.Context, conversation string, limit int) ([]web.Entry, error) {
	address := chat.Address{Channel: web.Channel, Conversation: conversation, Kind: chat.Direct}
	waiting, err := h.a.inbound.Waiting(ctx, address) // first: what is answered meanwhile is found twice, and not nowhere
	if err != nil {
		return nil, err
	}
	entries, err := h.entries(ctx, address, limit)
	if err != nil {
		return nil, err
	}
	var out []web.Entry
	stored := map[string]bool{}
	for _, e := range entries {
		stored[e.Turn] = true
		text := strings.TrimSpace(reply.Spoken(e.Message))
		if e.Kind != session.KindMessage || text == "" || e.Message.Role == llm.RoleTool {
			continue
		}
		out = append(out, web.Entry{Own: e.Message.Role == llm.RoleUser, Class: chat.Assistant, Text: text, At: e.At})
	}
	for _, w := range waiting {
		if !stored[h.a.joined.lead(w.Turn)] {
			out = append(out, web.Entry{ID: w.In.ID, Own: true, Text: w.In.Text, At: w.In.At})
		}
	}
	return out, nil
}

// entries are the last ones of a conversation.
func (h *history) entries(ctx context.Context, at chat.Address, limit int) ([]session.Entry, error) {
	s, err := h.a.sessions.Get(ctx, h.a.belongs(chat.Inbound{Address: at}).key)
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return h.a.sessions.Page(ctx, s.ID, 0, limit)
}

// Waits implements web.History.
func (h *history) Waits(ctx context.Context, conversation, id string) (bool, error) {
	list, err := h.a.inbound.Waiting(ctx, chat.Address{Channel: web.Channel, Conversation: conversation})
	return slices.ContainsFunc(list, func(w inbound.Waits) bool { return w.In.ID == id }), err
}
