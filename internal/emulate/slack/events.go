package slack

import (
	"encoding/json"
	"fmt"
	"time"
)

// The kinds of envelopes.
const (
	kindEvent  = "events_api"
	kindSlash  = "slash_commands"
	kindAction = "interactive"
)

// ackWindow is how long Slack waits for an acknowledgement.
const ackWindow = 3 * time.Second

// retries are the waits before an event is delivered again; other envelopes come again at most once.
var retries = []time.Duration{0, time.Minute, 5 * time.Minute}

// envelope is something on its way to the bot.
type envelope struct {
	id, kind string
	payload  json.RawMessage
	acked    chan struct{}
	done     bool // acknowledged
	waits    bool // for a connection
	attempts []Delivery
}

// Delivery is one attempt to deliver an envelope.
type Delivery struct {
	Envelope, Kind, Reason string
	Attempt                int // 0 = the first
	At                     time.Time
	Acked                  time.Time // zero = not
}

// Deliveries returns all attempts, envelope by envelope in the order of the events.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Delivery
	for _, e := range s.envelopes {
		out = append(out, e.attempts...)
	}
	return out
}

// Pending returns how many envelopes are neither acknowledged nor given up.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.envelopes {
		if !e.done {
			n++
		}
	}
	return n - s.lost
}

// Lost returns how many envelopes were given up.
func (s *Server) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// push sends an envelope, for the first time in the order of the calls; the lock is held.
func (s *Server) push(kind string, payload any) string {
	body, err := json.Marshal(payload)
	if err != nil {
		panic(fmt.Sprintf("emulated slack: %v", err)) // only types of this package are marshalled
	}
	return s.pushRaw(kind, body)
}

func (s *Server) pushRaw(kind string, body json.RawMessage) string {
	e := &envelope{id: fmt.Sprintf("envelope-%d", s.next()), kind: kind, payload: body, acked: make(chan struct{})}
	if s.away {
		return e.id
	}
	s.envelopes = append(s.envelopes, e)
	s.touch()
	if s.hook != nil {
		s.hook.queue <- e // buffered
		return e.id
	}
	s.send(e, "")
	s.tasks.Go(func() { s.follow(e) })
	return e.id
}

// send writes an envelope to the newest socket; without one it waits for the next. The lock is held.
func (s *Server) send(e *envelope, reason string) {
	if e.waits = len(s.sockets) == 0; e.waits {
		return
	}
	attempt := len(e.attempts)
	e.attempts = append(e.attempts, Delivery{Envelope: e.id, Kind: e.kind, Reason: reason, Attempt: attempt, At: time.Now()})
	s.touch()
	frame := map[string]any{
		"type": e.kind, "envelope_id": e.id, "payload": e.payload, "accepts_response_payload": e.kind != kindEvent,
	}
	if attempt > 0 {
		frame["retry_attempt"], frame["retry_reason"] = attempt, reason
	}
	if body, err := json.Marshal(frame); err == nil {
		s.sockets[len(s.sockets)-1].write(body)
	}
}

// follow delivers an envelope again until it is acknowledged or given up.
func (s *Server) follow(e *envelope) {
	waits := retries
	if e.kind != kindEvent {
		waits = waits[:1]
	}
	for i := -1; ; i++ {
		select {
		case <-e.acked:
			return
		case <-s.ctx.Done():
			return
		case <-time.After(ackWindow):
		}
		if i+1 >= len(waits) {
			break
		}
		if !s.waitOrAck(e, waits[i+1]) {
			return
		}
		s.mu.Lock()
		s.send(e, "timeout")
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost++
	s.touch()
}

// waitOrAck waits and reports whether the envelope is still to be delivered.
func (s *Server) waitOrAck(e *envelope, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-e.acked:
		return false
	case <-s.ctx.Done():
		return false
	}
}

// ack takes an acknowledgement.
func (s *Server) ack(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.envelopes {
		if e.id != id || e.done {
			continue
		}
		e.done = true
		e.attempts[len(e.attempts)-1].Acked = time.Now()
		close(e.acked)
		s.touch()
	}
}

// Redeliver sends an envelope once more, whether it was acknowledged or not.
func (s *Server) Redeliver(envelopeID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.envelopes {
		if e.id == envelopeID && s.hook == nil {
			s.send(e, "timeout")
		}
	}
}

// PushRaw sends an envelope of any kind with any payload, for example one that no client can decode.
// It returns the envelope's id.
func (s *Server) PushRaw(kind, payload string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushRaw(kind, json.RawMessage(payload))
}

// event sends an event of the Events API; the lock is held.
func (s *Server) event(inner map[string]any) {
	s.push(kindEvent, map[string]any{
		"token": "verification", "team_id": s.cfg.Team, "api_app_id": s.cfg.App, "type": "event_callback",
		"event_id": fmt.Sprintf("Ev%08d", s.next()), "event_time": s.now().Unix(), "event": inner,
		"authorizations": []any{map[string]any{"team_id": s.cfg.Team, "user_id": s.cfg.BotUser, "is_bot": true}},
	})
}

// placed adds where a message event happened; the lock is held.
func placed(c *channel, event map[string]any) map[string]any {
	event["channel"], event["channel_type"] = c.ID, c.Kind
	if event["event_ts"] == nil {
		event["event_ts"] = event["ts"]
	}
	return event
}

// hears reports whether the app gets message events of a channel; the lock is held.
func (s *Server) hears(c *channel) bool {
	return !c.NotMember && (!s.cfg.MentionsOnly || c.Kind == "im")
}

// announce tells the app of a message; the lock is held.
func (s *Server) announce(c *channel, m *Message) {
	if s.hears(c) {
		s.event(placed(c, s.wire(c, m)))
	}
}

// announceChange tells the app of a new version of a message; the lock is held.
func (s *Server) announceChange(c *channel, m *Message, before string) {
	if !s.hears(c) {
		return
	}
	old := s.wire(c, m)
	old["text"] = before
	s.event(placed(c, map[string]any{
		"type": "message", "subtype": "message_changed", "hidden": true, "ts": s.stamp(), "message": s.wire(c, m), "previous_message": old,
	}))
}

// announceDeletion tells the app that a message was removed; the lock is held.
func (s *Server) announceDeletion(c *channel, m *Message) {
	if s.hears(c) {
		s.event(placed(c, map[string]any{
			"type": "message", "subtype": "message_deleted", "hidden": true, "ts": s.stamp(), "deleted_ts": m.TS, "previous_message": s.wire(c, m),
		}))
	}
}
