// Package slack is a Slack workspace for tests, golden conversations and benchmarks.
//
// It speaks the real wire protocol and is as strict as Slack where bots get it wrong: the Web API
// with its error codes and limits, Socket Mode with acknowledged and repeated envelopes, signed HTTP
// events, streams, reactions, files, ephemeral answers. A test drives the people (UserSays, Slash,
// Press, …), scripts faults (Inject, Drop, Silence) and reads what happened (Messages, Calls),
// waiting without polling (WaitFor).
//
// The server can be reached over in-memory connections (Transport, Dial), which also work inside a
// testing/synctest bubble, or on loopback after Listen.
package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"understudy/internal/emulate/pipe"
)

// Root is the API root of the in-memory server; any other host works as well.
const Root = "http://slack.test"

// Config describes the workspace and the app. Empty fields get the defaults below.
type Config struct {
	BotToken, AppToken, SigningSecret string
	Team, App, Bot, BotUser           string // ids
	BotName                           string
	// SocketApp is the app that the app token belongs to; "" = App.
	SocketApp string
	// Scopes are what the bot token may do; nil = everything.
	Scopes []string
	// MentionsOnly leaves out message events of rooms, as for an app without channels:history.
	MentionsOnly bool
	// Quota is how many calls of a method one channel may get in a minute; absent = any number.
	Quota map[string]int
	// PingEvery is the pause between WebSocket pings; 0 = 10 s.
	PingEvery time.Duration
	// Offset is by how much the server's clock is ahead of the machine's.
	Offset time.Duration
}

func (c Config) withDefaults() Config {
	set := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	set(&c.BotToken, "xoxb-100000000001-200000000002-AbCdEfGhIjKlMnOpQrStUvWx")
	set(&c.AppToken, "xapp-1-A0APP00001-300000000003-0123456789abcdef0123456789abcdef")
	set(&c.SigningSecret, "8f742231b10e8888abcd99yyyzzz85a5")
	set(&c.Team, "T0TEAM001")
	set(&c.App, "A0APP00001")
	set(&c.Bot, "B0BOT0001")
	set(&c.BotUser, "U0BOT0001")
	set(&c.BotName, "understudy")
	set(&c.SocketApp, c.App)
	if c.PingEvery == 0 {
		c.PingEvery = 10 * time.Second
	}
	return c
}

// Server is one app's view of Slack. All methods may be used from several goroutines.
type Server struct {
	cfg    Config
	http   *http.Server
	pipes  *pipe.Network
	tasks  sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced with every change
	serial    int64
	channels  map[string]*channel
	users     map[string]User
	files     map[string]*file
	uploads   map[string]*file
	faults    []*fault
	calls     []Call
	spent     map[string][]time.Time // calls within the last minute, by method and channel
	tickets   map[string]bool
	sockets   []*socket
	envelopes []*envelope
	responses map[string]*responseURL
	statuses  map[string]string
	lost      int
	hook      *hook
	away      bool // nothing reaches the app, and it reaches no socket
	revoked   bool
}

// New starts a server; Close ends it.
func New(cfg Config) *Server {
	s := &Server{
		cfg:       cfg.withDefaults(),
		pipes:     pipe.New(),
		changed:   make(chan struct{}),
		channels:  map[string]*channel{},
		users:     map[string]User{},
		files:     map[string]*file{},
		uploads:   map[string]*file{},
		spent:     map[string][]time.Time{},
		tickets:   map[string]bool{},
		responses: map[string]*responseURL{},
		statuses:  map[string]string{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.serve(s.pipes)
	return s
}

func (s *Server) serve(l net.Listener) {
	s.tasks.Go(func() { _ = s.http.Serve(l) }) // always ends with ErrServerClosed
}

// Transport returns a new transport whose every connection, whatever the host, leads here.
func (s *Server) Transport() http.RoundTripper { return s.pipes.Transport() }

// Dial connects to the server, for WebSockets.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.pipes.Dial(ctx, network, address)
}

// Listen also serves on a free port of loopback and returns the API root.
func (s *Server) Listen() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("emulated slack: %w", err)
	}
	s.serve(l)
	return "http://" + l.Addr().String(), nil
}

// Close cuts all connections and waits until nothing of the server runs any more.
func (s *Server) Close() {
	s.cancel()
	s.DropSockets()
	_ = s.http.Close()
	s.mu.Lock()
	h := s.hook
	s.mu.Unlock()
	if h != nil {
		h.close()
	}
	s.tasks.Wait()
}

// Config returns the workspace with all defaults.
func (s *Server) Config() Config { return s.cfg }

// Revoke makes both tokens worthless and ends the connections.
func (s *Server) Revoke() {
	s.mu.Lock()
	s.revoked = true
	s.mu.Unlock()
	s.DropSockets()
}

// Away keeps everything from the app that happens until Back: there is no connection, and nothing of
// it is delivered later.
func (s *Server) Away() {
	s.mu.Lock()
	s.away = true
	s.mu.Unlock()
	s.DropSockets()
}

// Back ends Away.
func (s *Server) Back() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = false
}

// answer is the body of a Web API answer.
type answer map[string]any

// refusal is a Web API answer that says no.
type refusal struct {
	code             string
	needed, provided string
	status           int           // 0 = 200
	retryAfter       time.Duration // with status 429
}

// Error implements error.
func (r *refusal) Error() string { return r.code }

func refuse(code string) *refusal { return &refusal{code: code} }

// ServeHTTP serves the Web API, WebSockets, files and response URLs.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	switch kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); kind {
	case "api":
		s.serveAPI(w, r, rest)
	case "link":
		s.serveSocket(w, r)
	case "files":
		s.serveFile(w, r, rest)
	case "upload":
		s.serveUpload(w, r, rest)
	case "respond":
		s.serveResponse(w, r, rest)
	case "signin":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!DOCTYPE html><html><title>Sign in | Slack</title></html>"))
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request, method string) {
	c, token, err := readCall(r, method)
	if err != nil {
		s.write(w, nil, refuse("invalid_form_data"))
		return
	}
	c.host = r.Host
	f, no := s.record(c)
	if no != nil {
		s.write(w, nil, no)
		return
	}
	if f != nil && !s.fail(w, r, f) {
		return
	}
	result, no := s.do(c, token)
	if f != nil && f.DropAfter {
		cut(w)
		return
	}
	s.write(w, result, no)
}

// do makes an authorised call.
func (s *Server) do(c Call, token string) (answer, *refusal) {
	m, ok := methods[c.Method]
	if !ok {
		return nil, refuse("unknown_method")
	}
	if no := s.authorise(m, token); no != nil {
		return nil, no
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.touch()
	return m.run(s, c)
}

func (s *Server) authorise(m method, token string) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.revoked && token != "":
		return refuse("token_revoked")
	case s.away && m.app:
		return &refusal{code: "service_unavailable", status: http.StatusServiceUnavailable}
	}
	switch token {
	case "":
		return refuse("not_authed")
	case s.cfg.BotToken:
		if m.app {
			return refuse("not_allowed_token_type")
		}
	case s.cfg.AppToken:
		if !m.app {
			return refuse("not_allowed_token_type")
		}
		return nil
	default:
		return refuse("invalid_auth")
	}
	if m.scope == "" || s.cfg.Scopes == nil {
		return nil
	}
	for _, need := range strings.Split(m.scope, "|") {
		for _, have := range s.cfg.Scopes {
			if have == need {
				return nil
			}
		}
	}
	return &refusal{code: "missing_scope", needed: strings.ReplaceAll(m.scope, "|", ","), provided: strings.Join(s.cfg.Scopes, ",")}
}

func (s *Server) write(w http.ResponseWriter, result answer, no *refusal) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-OAuth-Scopes", strings.Join(s.scopes(), ","))
	if no == nil {
		if result == nil {
			result = answer{}
		}
		result["ok"] = true
		_ = json.NewEncoder(w).Encode(result) // the client may be gone
		return
	}
	if no.retryAfter > 0 {
		h.Set("Retry-After", fmt.Sprint(int(no.retryAfter.Seconds())))
	}
	if no.status != 0 {
		w.WriteHeader(no.status)
	}
	body := answer{"ok": false, "error": no.code}
	if no.needed != "" {
		body["needed"], body["provided"] = no.needed, no.provided
	}
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

// AllScopes are those of a complete app.
const AllScopes = "app_mentions:read,assistant:write,channels:history,channels:read,chat:write,commands,emoji:read,files:read,files:write,groups:history,groups:read,im:history,im:read,im:write,mpim:history,mpim:read,reactions:read,reactions:write,users:read"

func (s *Server) scopes() []string {
	if s.cfg.Scopes != nil {
		return s.cfg.Scopes
	}
	return strings.Split(AllScopes, ",")
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// next returns a new number; the lock is held.
func (s *Server) next() int64 {
	s.serial++
	return s.serial
}

// now is what the server's clock shows.
func (s *Server) now() time.Time { return time.Now().Add(s.cfg.Offset) }

// stamp returns a new message timestamp; the lock is held.
func (s *Server) stamp() string {
	return fmt.Sprintf("%d.%06d", s.now().Unix(), s.next()%1_000_000)
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
		case <-s.ctx.Done():
			return net.ErrClosed
		}
	}
}

// pause waits, and reports false when the server is closed.
func (s *Server) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}
