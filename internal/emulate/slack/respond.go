package slack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Life of a response URL.
const (
	responseUses = 5
	responseLife = 30 * time.Minute
)

// responseURL is an address through which one interaction may be answered.
type responseURL struct {
	channel, user, original string
	uses                    int
	until                   time.Time
}

// newResponse makes an address; the lock is held.
func (s *Server) newResponse(channel, user, original string) string {
	id := fmt.Sprintf("R%d", s.next())
	s.responses[id] = &responseURL{channel: channel, user: user, original: original, until: time.Now().Add(responseLife)}
	return Root + "/respond/" + id
}

// SpendResponses makes all response URLs useless, as after their last use.
func (s *Server) SpendResponses() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.responses {
		r.uses = responseUses
	}
}

func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request, id string) {
	c, _, err := readCall(r, "respond")
	if err != nil {
		s.write(w, nil, &refusal{code: "invalid_payload", status: http.StatusBadRequest})
		return
	}
	c.Params["response"] = id
	f, _ := s.record(c)
	if f != nil && !s.fail(w, r, f) {
		return
	}
	if no := s.respond(c, id); no != nil {
		s.write(w, nil, no)
		return
	}
	if f != nil && f.DropAfter {
		cut(w)
		return
	}
	_, _ = w.Write([]byte("ok")) // the client may be gone
}

func (s *Server) respond(c Call, id string) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.touch()
	at := s.responses[id]
	switch {
	case at == nil || time.Now().After(at.until):
		return &refusal{code: "expired_url", status: http.StatusNotFound}
	case at.uses >= responseUses:
		return &refusal{code: "used_url", status: http.StatusNotFound}
	}
	ch := s.channel(at.channel)
	original := ch.find(at.original)
	if c.Params["delete_original"] == "true" {
		if original == nil {
			return &refusal{code: "message_not_found", status: http.StatusNotFound}
		}
		at.uses++
		original.Deleted = true
		return nil
	}
	what, no := compose(c)
	if no != nil {
		no.status = http.StatusBadRequest
		return no
	}
	at.uses++
	if c.Params["replace_original"] == "true" && original != nil {
		original.Versions = append(original.Versions, original.Text)
		original.Text, original.Markdown, original.Blocks = what.text, what.markdown, what.blocks
		return nil
	}
	m := s.say(ch, c, what)
	m.response = id
	if c.Params["response_type"] != "in_channel" {
		m.OnlyFor = at.user
	}
	return nil
}

// fields are the members of a JSON object as form values.
func fields(payload json.RawMessage) url.Values {
	var object map[string]string
	_ = json.Unmarshal(payload, &object) // only objects of texts are made here
	out := url.Values{}
	for k, v := range object {
		out.Set(k, strings.TrimSpace(v))
	}
	return out
}
