package discord

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

const (
	apiPrefix   = "/api/v9"
	largestBody = 64 << 20
)

// Call is one REST request the bot made.
type Call struct {
	Method, Path string // Path without /api/v9, unescaped
	Query        url.Values
	Body         json.RawMessage // JSON, also of a multipart request
	Files        []File
	At           time.Time

	parts   []string
	auth    string
	garbled bool
}

// File is an upload or a file on the host.
type File struct {
	Name, Type string
	Data       []byte
}

// refusal is Discord's error body.
type refusal struct {
	Status     int      `json:"-"`
	Code       int      `json:"code"`
	Message    string   `json:"message"`
	Errors     any      `json:"errors,omitempty"`
	RetryAfter *float64 `json:"retry_after,omitempty"`
	Global     *bool    `json:"global,omitempty"`
}

func refuse(status, code int, message string) *refusal {
	return &refusal{Status: status, Code: code, Message: message}
}

// invalid is the refusal of a field.
func invalid(field, code, message string) *refusal {
	r := refuse(http.StatusBadRequest, 50035, "Invalid Form Body")
	r.Errors = map[string]any{field: map[string]any{"_errors": []any{map[string]any{"code": code, "message": message}}}}
	return r
}

func (r *refusal) limited(after time.Duration, global bool) {
	s := after.Seconds()
	r.Message, r.RetryAfter, r.Global = "You are being rate limited.", &s, &global
}

// none is the answer without a body.
type none struct{}

// ServeHTTP implements REST, the gateway and the file host.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if websocket.IsWebSocketUpgrade(r) {
		s.serveGateway(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/attachments/") {
		s.download(w, r)
		return
	}
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	path, ok := strings.CutPrefix(r.URL.Path, apiPrefix)
	if !ok {
		answer(w, refuse(http.StatusNotFound, 0, "404: Not Found"))
		return
	}
	c := readCall(r, path)
	f := s.record(c)
	if f != nil && !s.fail(w, r, f) {
		return
	}
	limited := s.limit(w, c)
	var out any
	switch {
	case limited != nil:
		out = limited
	case c.garbled:
		out = refuse(http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
	case !s.authorised(c):
		out = refuse(http.StatusUnauthorized, 0, "401: Unauthorized")
	default:
		s.mu.Lock()
		out = s.route(c)
		s.touch()
		s.mu.Unlock()
	}
	if f != nil && f.DropAfter {
		cut(w)
		return
	}
	answer(w, out)
}

// authorised reports whether a call carries the bot's token or needs none.
func (s *Server) authorised(c Call) bool {
	switch c.parts[0] {
	case "interactions", "webhooks":
		return true
	case "gateway":
		if len(c.parts) == 1 {
			return true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.auth == "Bot "+s.cfg.Token && !s.revoked
}

func (s *Server) record(c Call) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
	s.touch()
	return s.due(c)
}

// Calls returns the calls with a method and a part of a path, in order; "" matches all.
func (s *Server) Calls(method, path string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if (method == "" || c.Method == method) && strings.Contains(c.Path, path) {
			out = append(out, c)
		}
	}
	return out
}

// readCall reads a request: JSON, or a form of JSON and files.
func readCall(r *http.Request, path string) Call {
	c := Call{Method: r.Method, Path: path, Query: r.URL.Query(), At: time.Now(), auth: r.Header.Get("Authorization")}
	c.parts = strings.Split(strings.Trim(path, "/"), "/")
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	body := io.LimitReader(r.Body, largestBody)
	if kind != "multipart/form-data" {
		raw, err := io.ReadAll(body)
		c.Body = raw
		c.garbled = err != nil || len(raw) > 0 && !json.Valid(raw)
		return c
	}
	form := multipart.NewReader(body, params["boundary"])
	for {
		p, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return c
		}
		if err != nil {
			c.garbled = true
			return c
		}
		data, err := io.ReadAll(p)
		c.garbled = c.garbled || err != nil
		if p.FormName() == "payload_json" {
			c.Body = data
			c.garbled = c.garbled || !json.Valid(data)
			continue
		}
		c.Files = append(c.Files, File{Name: p.FileName(), Type: p.Header.Get("Content-Type"), Data: data})
	}
}

// match reports whether a call has a method and a path in which "*" stands for one part.
func (c Call) match(method, pattern string) bool {
	want := strings.Split(pattern, "/")
	if c.Method != method || len(want) != len(c.parts) {
		return false
	}
	for i, p := range want {
		if p != "*" && p != c.parts[i] {
			return false
		}
	}
	return true
}

// route does a call; the lock is held. The result is a body, none or a *refusal.
func (s *Server) route(c Call) any {
	p := c.parts
	switch {
	case c.match("GET", "gateway"):
		return map[string]any{"url": s.wsURL()}
	case c.match("GET", "gateway/bot"):
		left := max(sessionsADay-len(s.starts), 0)
		return map[string]any{"url": s.wsURL(), "shards": 1, "session_start_limit": map[string]any{"total": sessionsADay, "remaining": left, "reset_after": 3600000, "max_concurrency": 1}}
	case c.match("GET", "users/@me"):
		return s.user(s.botID)
	case c.match("GET", "users/@me/guilds"):
		out := []any{}
		for _, g := range s.guilds {
			out = append(out, map[string]any{"id": g.ID, "name": g.Name})
		}
		return out
	case c.match("GET", "guilds/*/threads/active"):
		return s.activeThreads(p[1])
	case c.match("GET", "applications/@me"), c.match("GET", "oauth2/applications/@me"):
		return map[string]any{"id": ApplicationID, "name": s.cfg.Name, "flags": s.flags()}
	case c.match("POST", "users/@me/channels"):
		return s.openDirect(c)
	case c.match("GET", "guilds/*"), c.match("GET", "guilds/*/members/*"):
		g := s.guild(p[1])
		switch {
		case g == nil:
			return refuse(http.StatusForbidden, 50001, "Missing Access")
		case len(p) == 2:
			return s.profile(g)
		}
		return s.memberWire(g.ID, p[3])
	case c.match("GET", "applications/*/commands"):
		return s.listCommands("")
	case c.match("GET", "applications/*/guilds/*/commands") && p[1] == ApplicationID:
		return s.listCommands(p[3])
	case c.match("PUT", "applications/*/commands"):
		return s.setCommands(c, "")
	case c.match("PUT", "applications/*/guilds/*/commands") && p[1] == ApplicationID:
		return s.setCommands(c, p[3])
	case p[0] == "channels" && len(p) > 1:
		return s.routeChannel(c)
	case c.match("POST", "interactions/*/*/callback"):
		return s.callback(c)
	case p[0] == "webhooks" && len(p) > 2:
		return s.routeWebhook(c)
	}
	return refuse(http.StatusNotFound, 0, "404: Not Found")
}

func (s *Server) routeChannel(c Call) any {
	p := c.parts
	to := s.channels[p[1]]
	if to == nil {
		return refuse(http.StatusNotFound, 10003, "Unknown Channel")
	}
	if d, ok := s.denied[to.ID]; ok {
		return refuse(d.status, d.code, d.message)
	}
	switch {
	case c.match("GET", "channels/*"):
		return s.channelWire(to)
	case c.match("PATCH", "channels/*"):
		return s.modify(c, to)
	case c.match("GET", "channels/*/messages"):
		return s.list(c, to)
	case c.match("POST", "channels/*/messages"):
		return s.create(c, to)
	case c.match("POST", "channels/*/typing"):
		to.typing = append(to.typing, time.Now())
		return none{}
	case c.match("POST", "channels/*/threads"):
		return s.post(c, to)
	case len(p) < 4 || p[2] != "messages":
		return refuse(http.StatusNotFound, 0, "404: Not Found")
	}
	m := s.find(to.ID, p[3])
	if m == nil || m.Ephemeral {
		return refuse(http.StatusNotFound, 10008, "Unknown Message")
	}
	switch {
	case c.match("GET", "channels/*/messages/*"):
		return s.messageWire(m, false)
	case c.match("PATCH", "channels/*/messages/*"):
		return s.patch(c, m)
	case c.match("DELETE", "channels/*/messages/*"):
		m.Deleted = true
		s.dispatch("MESSAGE_DELETE", s.deletionWire(m))
		return none{}
	case c.match("POST", "channels/*/messages/*/threads"):
		return s.branch(c, to, m)
	case c.match("PUT", "channels/*/messages/*/reactions/*/@me"), c.match("DELETE", "channels/*/messages/*/reactions/*/@me"):
		return s.react(c, m, p[5])
	}
	return refuse(http.StatusNotFound, 0, "404: Not Found")
}

// flags are the application's flags that tell which privileged intents are allowed.
func (s *Server) flags() int {
	f := 0
	if !s.cfg.NoMessageContent {
		f |= 1 << 19
	}
	if !s.cfg.NoGuildMembers {
		f |= 1 << 15
	}
	return f
}

func (s *Server) openDirect(c Call) any {
	var p struct {
		Recipient string `json:"recipient_id"`
	}
	if json.Unmarshal(c.Body, &p) != nil || p.Recipient == "" {
		return invalid("recipient_id", "BASE_TYPE_REQUIRED", "This field is required")
	}
	for _, ch := range s.channels {
		if ch.Type == DirectChannel && len(ch.Recipients) == 1 && ch.Recipients[0] == p.Recipient {
			return s.channelWire(ch)
		}
	}
	ch := &Channel{ID: s.newID(), Type: DirectChannel, Recipients: []string{p.Recipient}}
	s.channels[ch.ID] = ch
	return s.channelWire(ch)
}

// download serves a file; its address must be the signed one.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f, ok := s.files[r.URL.Path]
	due := s.due(Call{Method: r.Method, Path: r.URL.Path})
	s.calls = append(s.calls, Call{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), At: time.Now(), auth: r.Header.Get("Authorization")})
	s.mu.Unlock()
	if due != nil && !s.fail(w, r, due) {
		return
	}
	if !ok || r.URL.Query().Get("hm") == "" {
		http.Error(w, "This content is no longer available.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", f.Type)
	_, _ = w.Write(f.Data) // the client may be gone
}

// Authorization returns the header that a call carried.
func (c Call) Authorization() string { return c.auth }

func answer(w http.ResponseWriter, out any) {
	w.Header().Set("Content-Type", "application/json")
	switch x := out.(type) {
	case none:
		w.WriteHeader(http.StatusNoContent)
		return
	case *refusal:
		if x.RetryAfter != nil {
			w.Header().Set("Retry-After", seconds(time.Duration(*x.RetryAfter*float64(time.Second))))
			if *x.Global {
				w.Header().Set("X-RateLimit-Global", "true")
			}
		}
		w.WriteHeader(x.Status)
	}
	_ = json.NewEncoder(w).Encode(out) // the client may be gone
}
