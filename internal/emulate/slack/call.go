package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const largestForm = 64 << 20

// Call is one request the bot made. Params hold no token.
type Call struct {
	Method string
	Params map[string]string
	At     time.Time

	host string
}

// Channel is the channel the call is about, "" if none.
func (c Call) Channel() string {
	for _, key := range []string{"channel", "channel_id"} {
		if v := c.Params[key]; v != "" {
			return v
		}
	}
	return ""
}

func (c Call) integer(key string, otherwise int) int {
	if n, err := strconv.Atoi(c.Params[key]); err == nil {
		return n
	}
	return otherwise
}

func (c Call) has(key string) bool { return c.Params[key] != "" }

// readCall reads the parameters of a method call, a form or JSON, and its token.
func readCall(r *http.Request, method string) (Call, string, error) {
	c := Call{Method: method, Params: map[string]string{}, At: time.Now()}
	body, err := io.ReadAll(io.LimitReader(r.Body, largestForm))
	if err != nil {
		return Call{}, "", fmt.Errorf("unreadable body: %w", err)
	}
	token := strings.TrimSpace(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer"))
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		if err := c.readJSON(body); err != nil {
			return Call{}, "", err
		}
		return c, token, nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return Call{}, "", fmt.Errorf("unreadable form: %w", err)
	}
	for _, values := range []url.Values{r.URL.Query(), form} {
		for key, v := range values {
			c.Params[key] = v[0]
		}
	}
	if t := c.Params["token"]; t != "" {
		token = t
	}
	delete(c.Params, "token")
	return c, token, nil
}

func (c *Call) readJSON(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return errors.New("unreadable JSON")
	}
	for key, raw := range fields {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		c.Params[key] = text
	}
	return nil
}

// record notes a call and returns the fault that is due for it, or why it is refused at once.
func (s *Server) record(c Call) (*fault, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
	s.touch()
	if no := s.overQuota(c); no != nil {
		return nil, no
	}
	return s.due(c), nil
}

// overQuota refuses a call above the quota of its method and channel; the lock is held.
func (s *Server) overQuota(c Call) *refusal {
	quota, ok := s.cfg.Quota[c.Method]
	if !ok {
		return nil
	}
	key := c.Method + " " + c.Channel()
	var recent []time.Time
	for _, at := range s.spent[key] {
		if c.At.Sub(at) < time.Minute {
			recent = append(recent, at)
		}
	}
	s.spent[key] = recent
	if len(recent) >= quota {
		return &refusal{code: "ratelimited", status: http.StatusTooManyRequests, retryAfter: 10 * time.Second}
	}
	s.spent[key] = append(recent, c.At)
	return nil
}

// Calls returns the calls of a method in order; "" returns all.
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if method == "" || c.Method == method {
			out = append(out, c)
		}
	}
	return out
}
