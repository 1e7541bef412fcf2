package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

type update struct {
	id   int64
	kind string
	chat int64 // whose order it belongs to; 0 = unknown
	body json.RawMessage
}

const (
	mostUpdates = 100
	conflict    = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
)

// getUpdates is the long poll: a call with an offset confirms everything below it, and a second
// call ends the first with a conflict.
func (s *Server) getUpdates(ctx context.Context, c Call) (any, *reply) {
	mine := make(chan struct{})
	s.mu.Lock()
	if s.webhook.url != "" {
		s.mu.Unlock()
		return nil, refuse(http.StatusConflict, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
	}
	if s.poll != nil {
		close(s.poll)
	}
	s.poll = mine
	s.confirm(c.integer("offset"))
	s.mu.Unlock()
	defer s.endPoll(mine)

	limit := int(c.integer("limit"))
	if limit <= 0 || limit > mostUpdates {
		limit = mostUpdates
	}
	var allowed []string
	_ = json.Unmarshal([]byte(c.Params["allowed_updates"]), &allowed) // absent = all
	timer := time.NewTimer(time.Duration(c.integer("timeout")) * time.Second)
	defer timer.Stop()
	for {
		batch, changed := s.pending(limit, allowed)
		if s.isRevoked() {
			return nil, refuse(http.StatusUnauthorized, "Unauthorized")
		}
		if len(batch) > 0 {
			return batch, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return batch, nil
		case <-mine:
			return nil, refuse(http.StatusConflict, conflict)
		case <-ctx.Done():
			return batch, nil
		case <-s.closed:
			return batch, nil
		}
	}
}

func (s *Server) endPoll(mine chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poll == mine {
		s.poll = nil
	}
}

// confirm forgets updates below the offset; a negative one counts from the end. The lock is held.
func (s *Server) confirm(offset int64) {
	if offset < 0 {
		offset = s.nextID + offset
	}
	n := slices.IndexFunc(s.updates, func(u update) bool { return u.id >= offset })
	if n < 0 {
		n = len(s.updates)
	}
	if n > 0 {
		s.updates = slices.Delete(s.updates, 0, n)
		s.touch()
	}
}

func (s *Server) pending(limit int, allowed []string) ([]json.RawMessage, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []json.RawMessage{}
	for _, u := range s.updates {
		if len(out) == limit {
			break
		}
		if len(allowed) == 0 || u.kind == "" || slices.Contains(allowed, u.kind) {
			out = append(out, u.body)
		}
	}
	return out, s.changed
}

// Unconfirmed returns how many updates the bot has not confirmed yet.
func (s *Server) Unconfirmed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.updates)
}

// push queues an update of a chat; the lock is held.
func (s *Server) push(chat int64, kind string, content any) {
	s.queue(chat, kind, content)
	if s.weather != nil && s.weather.roll(s.weather.Duplicate) {
		s.queue(chat, kind, content)
	}
}

func (s *Server) queue(chat int64, kind string, content any) {
	id := s.nextID
	s.nextID++
	body, err := json.Marshal(map[string]any{"update_id": id, kind: content})
	if err != nil {
		panic(fmt.Sprintf("emulated telegram: %v", err)) // only types of this package are marshalled
	}
	s.updates = append(s.updates, update{id: id, kind: kind, chat: chat, body: body})
	s.touch()
}

// PushRaw queues an update as it stands, for example one that no client can decode. Every "%d" in
// it becomes its update id, which is returned.
func (s *Server) PushRaw(body string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextID
	s.nextID++
	s.updates = append(s.updates, update{id: id, body: json.RawMessage(strings.ReplaceAll(body, "%d", strconv.FormatInt(id, 10)))})
	s.touch()
	return id
}

// Redeliver queues messages once more, under new update ids.
func (s *Server) Redeliver(chatID int64, messages ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil {
		return
	}
	for _, id := range messages {
		if m := c.find(id); m != nil {
			s.push(chatID, "message", s.wire(c, m))
		}
	}
}

// touch tells everybody who waits that something changed; the lock is held.
func (s *Server) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// WaitFor waits until cond holds, looking at every change, or until ctx ends and then returns its
// cause. cond may call the methods of the server.
func (s *Server) WaitFor(ctx context.Context, cond func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.closed:
			return net.ErrClosed
		}
	}
}
