// Package telegram is a Telegram Bot API server for tests, golden conversations and benchmarks.
//
// It speaks the real wire protocol and is as strict as the real server where bots get it wrong:
// long polling with confirmed offsets and conflicts, webhooks with retries, HTML entities, lengths,
// topics, replies, edits, buttons, reactions, file downloads. A test drives the people (UserSays,
// Press, …), scripts faults (Inject) or leaves them to chance (SetWeather), and reads what happened
// (Messages, Calls), waiting without polling (WaitFor).
//
// The server can be reached through Client over in-memory connections, which also works inside a
// testing/synctest bubble, or on loopback after Listen.
package telegram

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy/internal/emulate/pipe"
)

// Root is the API root of the in-memory server; any other host works as well.
const Root = "http://telegram.test"

// DefaultToken is the bot token of a Config without one.
const DefaultToken = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"

// Config describes the bot account. The zero value is a bot named @understudy_bot.
type Config struct {
	Token    string // "<id>:<secret>"; "" = DefaultToken
	Username string // without @
	// TopicsInDMs gives private chats topics (getMe.has_topics_enabled).
	TopicsInDMs bool
	// ReadsAll switches the privacy mode off (getMe.can_read_all_group_messages).
	ReadsAll bool
	// FirstUpdate is the id of the first update; 0 = 1000.
	FirstUpdate int64
	// Webhook is how webhook addresses are reached; nil = not at all.
	Webhook http.RoundTripper
	// Offset is by how much the server's clock is ahead of the machine's.
	Offset time.Duration
}

// Server is one bot's view of Telegram. All methods may be used from several goroutines.
type Server struct {
	cfg    Config
	botID  int64
	http   *http.Server
	pipes  *pipe.Network
	serves sync.WaitGroup
	closed chan struct{}
	once   sync.Once

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced with every change
	updates   []update
	nextID    int64
	poll      chan struct{} // closed to end the running getUpdates with a conflict
	chats     map[int64]*chat
	users     map[int64]User
	files     map[string]file
	faults    []*fault
	calls     []Call
	commands  map[string]json.RawMessage // by scope
	callbacks map[string]*callback       // by id
	toasts    map[int64][]string         // by user
	webhook   webhook
	weather   *weather
	conns     map[net.Conn]bool
	revoked   bool
	serial    int64
}

// New starts a server; Close ends it.
func New(cfg Config) *Server {
	if cfg.Token == "" {
		cfg.Token = DefaultToken
	}
	if cfg.Username == "" {
		cfg.Username = "understudy_bot"
	}
	if cfg.FirstUpdate == 0 {
		cfg.FirstUpdate = 1000
	}
	s := &Server{
		cfg:       cfg,
		pipes:     pipe.New(),
		closed:    make(chan struct{}),
		changed:   make(chan struct{}),
		nextID:    cfg.FirstUpdate,
		chats:     map[int64]*chat{},
		users:     map[int64]User{},
		files:     map[string]file{},
		commands:  map[string]json.RawMessage{},
		callbacks: map[string]*callback{},
		toasts:    map[int64][]string{},
		conns:     map[net.Conn]bool{},
	}
	_, _ = fmt.Sscanf(cfg.Token, "%d:", &s.botID) // 0 for a token without an id
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, ConnState: s.track}
	s.serve(s.pipes)
	return s
}

func (s *Server) serve(l net.Listener) {
	s.serves.Go(func() { _ = s.http.Serve(l) }) // always ends with ErrServerClosed
}

// Client returns an HTTP client whose every connection, whatever the host, leads here.
func (s *Server) Client() *http.Client {
	return &http.Client{Transport: s.Transport()}
}

// Transport returns a new transport of that kind, with its own connections.
func (s *Server) Transport() http.RoundTripper {
	return s.pipes.Transport()
}

// Listen also serves on a free port of loopback and returns the API root.
func (s *Server) Listen() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("emulated telegram: %w", err)
	}
	s.serve(l)
	return "http://" + l.Addr().String(), nil
}

// Close cuts all connections and waits until nothing of the server runs any more.
func (s *Server) Close() {
	s.once.Do(func() { close(s.closed) })
	_ = s.http.Close()
	s.serves.Wait()
	if t, ok := s.cfg.Webhook.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// track keeps the open connections.
func (s *Server) track(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.conns[c] = true
	case http.StateClosed, http.StateHijacked:
		delete(s.conns, c)
	}
}

// Cut breaks all connections; new ones can be made at once.
func (s *Server) Cut() {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// Revoke makes the token worthless, as @BotFather does: polls end, and every call is refused.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = true
	s.touch()
}

func (s *Server) isRevoked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revoked
}

// Token returns the bot token.
func (s *Server) Token() string { return s.cfg.Token }

// BotID returns the user id of the bot.
func (s *Server) BotID() int64 { return s.botID }

// Username returns the bot's user name, without @.
func (s *Server) Username() string { return s.cfg.Username }

// reply is a Bot API response.
type reply struct {
	OK          bool        `json:"ok"`
	Result      any         `json:"result,omitempty"`
	ErrorCode   int         `json:"error_code,omitempty"`
	Description string      `json:"description,omitempty"`
	Parameters  *parameters `json:"parameters,omitempty"`
}

type parameters struct {
	RetryAfter int   `json:"retry_after,omitempty"`
	MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
}

// Error makes a reply usable as the error of a method.
func (r *reply) Error() string { return r.Description }

func refuse(code int, format string, args ...any) *reply {
	return &reply{ErrorCode: code, Description: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *reply {
	return refuse(http.StatusBadRequest, "Bad Request: "+format, args...)
}

const largestForm = 64 << 20

// now is what the server's clock shows.
func (s *Server) now() time.Time { return time.Now().Add(s.cfg.Offset) }

// ServeHTTP implements the paths /bot<token>/<method> and /file/bot<token>/<path>.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	if s.isRevoked() {
		write(w, refuse(http.StatusUnauthorized, "Unauthorized"))
		return
	}
	if path, ok := strings.CutPrefix(r.URL.Path, "/file/bot"+s.cfg.Token+"/"); ok {
		s.download(w, path)
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/bot"+s.cfg.Token+"/")
	if !ok {
		write(w, refuse(http.StatusUnauthorized, "Unauthorized"))
		return
	}
	c, err := readCall(r, name)
	if err != nil {
		write(w, badRequest("%v", err))
		return
	}
	f := s.record(c)
	if f != nil && !s.fail(w, r, f) {
		return
	}
	answer := s.dispatch(r, c)
	if f != nil && f.DropAfter {
		cut(w)
		return
	}
	write(w, answer)
}

// Call is one request the bot made.
type Call struct {
	Method string
	Params map[string]string
	Files  map[string][]byte // uploads, by field
	At     time.Time

	names map[string]string // file names, by field
}

// Chat is the chat the call is about, 0 if none.
func (c Call) Chat() int64 { return c.integer("chat_id") }

func (c Call) integer(key string) int64 {
	n, _ := strconv.ParseInt(c.Params[key], 10, 64) // a missing parameter is 0
	return n
}

// record notes a call and returns the fault that is due for it.
func (s *Server) record(c Call) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
	s.touch()
	return s.due(c)
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

func (s *Server) dispatch(r *http.Request, c Call) *reply {
	var result any
	var err *reply
	switch c.Method {
	case "getMe":
		result = s.self()
	case "getUpdates":
		result, err = s.getUpdates(r.Context(), c)
	case "setWebhook":
		result, err = s.setWebhook(c)
	case "deleteWebhook":
		result = s.deleteWebhook()
	case "getWebhookInfo":
		result = s.webhookInfo()
	case "sendMessage":
		result, err = s.sendMessage(c)
	case "sendPhoto", "sendDocument", "sendVoice", "sendAudio", "sendVideo", "sendAnimation":
		result, err = s.sendFile(c)
	case "editMessageText", "editMessageCaption", "editMessageReplyMarkup":
		result, err = s.edit(c)
	case "deleteMessage":
		result, err = s.remove(c)
	case "sendChatAction":
		result, err = s.chatAction(c)
	case "setMessageReaction":
		result, err = s.react(c)
	case "answerCallbackQuery":
		result, err = s.answerCallback(c)
	case "setMyCommands":
		result, err = s.setCommands(c)
	case "getMyCommands":
		result = s.getCommands(c)
	case "getChatMember":
		result, err = s.getMember(c)
	case "getFile":
		result, err = s.getFile(c)
	default:
		err = refuse(http.StatusNotFound, "Not Found")
	}
	if err != nil {
		return err
	}
	return &reply{OK: true, Result: result}
}

func (s *Server) self() any {
	return map[string]any{
		"id": s.botID, "is_bot": true, "first_name": "Understudy", "username": s.cfg.Username,
		"can_join_groups": true, "can_read_all_group_messages": s.cfg.ReadsAll, "has_topics_enabled": s.cfg.TopicsInDMs,
	}
}

func write(w http.ResponseWriter, r *reply) {
	w.Header().Set("Content-Type", "application/json")
	if !r.OK {
		w.WriteHeader(r.ErrorCode)
	}
	_ = json.NewEncoder(w).Encode(r) // the client may be gone
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}
