package discord

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// Operations of the gateway.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

// Close codes of the gateway that the server itself uses.
const (
	closeUnknownOp     = 4001
	closeDecode        = 4002
	closeNotIdentified = 4003
	closeToken         = 4004
	closeAlready       = 4005
	closeSequence      = 4007
	closeRate          = 4008
	closeTimedOut      = 4009
	closeIntents       = 4013
	closeDisallowed    = 4014
)

const (
	intentGuilds         = 1 << 0
	intentMembers        = 1 << 1
	intentPresences      = 1 << 8
	intentGuildMessages  = 1 << 9
	intentGuildReactions = 1 << 10
	intentDirect         = 1 << 12
	intentDirectReaction = 1 << 13
	intentContent        = 1 << 15
	knownIntents         = 1<<22 - 1 | 1<<24 | 1<<25

	framesPerMinute = 120
	identifyEvery   = 5 * time.Second
)

// Connect is one connection of the bot to the gateway.
type Connect struct {
	At     time.Time
	Resume bool // at the address that READY named for resuming
	Op     int  // 2 = identified, 6 = resumed, 0 = neither
	// Session and Seq are those the bot sent to resume.
	Session string
	Seq     int64
	// Code is the close code that the bot sent; 0 = it sent none, or it is still connected.
	Code int
}

// session is a gateway session; it outlives connections.
type session struct {
	id      string
	intents int
	seq     int64
	log     []frame // dispatched events, for replay
	link    *link
}

type frame struct {
	Op    int    `json:"op"`
	D     any    `json:"d"`
	S     *int64 `json:"s"`
	T     any    `json:"t"`
	raw   string // instead of the above
	close int    // close instead
	cut   bool   // cut instead
}

type event struct {
	kind string
	data any
}

// link is one connection.
type link struct {
	ws      *websocket.Conn
	wake    chan struct{}
	queue   []frame
	session *session
	index   int  // in connects
	deaf    bool // half-open: nothing is sent any more
	fault   GatewayFault
	beat    time.Time
	frames  []time.Time
}

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

// serveGateway runs one connection.
func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("v") == "" || r.URL.Query().Get("encoding") != "json" {
		http.Error(w, "version and encoding are needed", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	away := s.away
	s.mu.Unlock()
	if away {
		http.Error(w, "the gateway is away", http.StatusServiceUnavailable)
		return
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	s.links.Add(1)
	defer s.links.Done()
	defer func() { _ = ws.Close() }()
	done := make(chan struct{})
	defer close(done)
	l := &link{ws: ws, wake: make(chan struct{}, 1), beat: time.Now()}
	s.open(l, strings.HasPrefix(r.URL.Path, "/resume"))
	s.links.Go(func() { s.write(l, done) })
	s.links.Go(func() { s.watch(l, done) })
	s.read(l)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.session != nil && l.session.link == l {
		l.session.link = nil
	}
	if s.current == l {
		s.current = nil
	}
	s.touch()
}

func (s *Server) open(l *link, resume bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.gateFault) > 0 {
		l.fault, s.gateFault = s.gateFault[0], s.gateFault[1:]
	}
	l.index = len(s.connects)
	s.connects = append(s.connects, Connect{At: time.Now(), Resume: resume})
	s.current = l
	if !l.fault.NoHello {
		s.send(l, frame{Op: opHello, D: map[string]any{"heartbeat_interval": s.cfg.Heartbeat.Milliseconds()}})
	}
	s.touch()
}

// send queues a frame; the lock is held.
func (s *Server) send(l *link, f frame) {
	if l == nil || l.deaf {
		return
	}
	l.queue = append(l.queue, f)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write sends what is queued until the connection ends.
func (s *Server) write(l *link, done <-chan struct{}) {
	for {
		s.mu.Lock()
		queue := l.queue
		l.queue = nil
		s.mu.Unlock()
		for _, f := range queue {
			if !f.put(l.ws) {
				_ = l.ws.Close()
				return
			}
		}
		if len(queue) > 0 {
			continue
		}
		select {
		case <-l.wake:
		case <-done:
			return
		case <-s.closed:
			_ = l.ws.Close()
			return
		}
	}
}

func (f frame) put(ws *websocket.Conn) bool {
	switch {
	case f.cut:
		return false
	case f.close != 0:
		message := websocket.FormatCloseMessage(f.close, "closed by the test")
		_ = ws.WriteControl(websocket.CloseMessage, message, time.Now().Add(time.Second))
		return false
	case f.raw != "":
		return ws.WriteMessage(websocket.TextMessage, []byte(f.raw)) == nil
	default:
		return ws.WriteJSON(f) == nil
	}
}

// watch ends a connection that sends no heartbeats.
func (s *Server) watch(l *link, done <-chan struct{}) {
	ticker := time.NewTicker(s.cfg.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-s.closed:
			return
		case <-ticker.C:
			s.mu.Lock()
			if time.Since(l.beat) > 2*s.cfg.Heartbeat {
				s.send(l, frame{close: closeTimedOut})
			}
			s.mu.Unlock()
		}
	}
}

// read handles what the bot sends until the connection ends.
func (s *Server) read(l *link) {
	for {
		_, data, err := l.ws.ReadMessage()
		if err != nil {
			if code, ok := err.(*websocket.CloseError); ok && code.Code != websocket.CloseAbnormalClosure { //nolint:errorlint // it is never wrapped
				s.left(l, code.Code)
			}
			return
		}
		s.mu.Lock()
		s.receive(l, data)
		s.touch()
		s.mu.Unlock()
	}
}

// left notes the close code of the bot; 1000 and 1001 end its session.
func (s *Server) left(l *link, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connects[l.index].Code = code
	if l.session != nil && (code == websocket.CloseNormalClosure || code == websocket.CloseGoingAway) {
		s.forget(l.session)
	}
}

func (s *Server) forget(gone *session) {
	s.sessions = slices.DeleteFunc(s.sessions, func(x *session) bool { return x == gone })
}

// receive handles one frame of the bot; the lock is held.
func (s *Server) receive(l *link, data []byte) {
	var f struct {
		Op *int            `json:"op"`
		D  json.RawMessage `json:"d"`
	}
	now := time.Now()
	l.frames = slices.DeleteFunc(append(l.frames, now), func(t time.Time) bool { return now.Sub(t) > time.Minute })
	switch {
	case json.Unmarshal(data, &f) != nil || f.Op == nil:
		s.send(l, frame{close: closeDecode})
	case len(l.frames) > framesPerMinute:
		s.send(l, frame{close: closeRate})
	case *f.Op == opHeartbeat:
		l.beat = now
		s.send(l, frame{Op: opAck})
	case *f.Op == opIdentify:
		s.identify(l, f.D)
	case *f.Op == opResume:
		s.resume(l, f.D)
	case l.session == nil:
		s.send(l, frame{close: closeNotIdentified})
	case *f.Op == 3 || *f.Op == 4 || *f.Op == 8: // presence, voice and members: nothing to see here
	default:
		s.send(l, frame{close: closeUnknownOp})
	}
}

// early does what the test wants in place of an answer to identify or resume, and reports whether it
// did.
func (s *Server) early(l *link) bool {
	switch f := l.fault; {
	case f.NoReady:
	case f.Close != 0:
		s.send(l, frame{close: f.Close})
	case f.Reconnect:
		s.send(l, frame{Op: opReconnect})
	case f.Invalid:
		s.send(l, frame{Op: opInvalid, D: f.Resumable})
	case f.Raw != "":
		s.send(l, frame{raw: f.Raw})
		return false
	default:
		return false
	}
	return true
}

func (s *Server) identify(l *link, d json.RawMessage) {
	var p struct {
		Token      string            `json:"token"`
		Intents    *int              `json:"intents"`
		Properties map[string]string `json:"properties"`
	}
	s.connects[l.index].Op = opIdentify
	recent := len(s.starts) > 0 && time.Since(s.starts[len(s.starts)-1]) < identifyEvery
	switch {
	case l.session != nil:
		s.send(l, frame{close: closeAlready})
		return
	case json.Unmarshal(d, &p) != nil || p.Properties == nil:
		s.send(l, frame{close: closeDecode})
		return
	case s.revoked, p.Token != s.cfg.Token && p.Token != "Bot "+s.cfg.Token:
		s.send(l, frame{close: closeToken})
		return
	case p.Intents == nil || *p.Intents&^knownIntents != 0:
		s.send(l, frame{close: closeIntents})
		return
	case *p.Intents&intentContent != 0 && s.cfg.NoMessageContent, *p.Intents&intentMembers != 0 && s.cfg.NoGuildMembers, *p.Intents&intentPresences != 0:
		s.send(l, frame{close: closeDisallowed})
		return
	}
	s.starts = append(s.starts, time.Now())
	if recent || len(s.starts) > sessionsADay {
		s.send(l, frame{Op: opInvalid, D: false})
		return
	}
	if s.early(l) {
		return
	}
	s.serial++
	x := &session{id: fmt.Sprintf("session-%d", s.serial), intents: *p.Intents, link: l}
	l.session = x
	s.sessions = append(s.sessions, x)
	guilds := []any{}
	for _, g := range s.guilds {
		guilds = append(guilds, map[string]any{"id": g.ID, "unavailable": true})
	}
	s.push(x, "READY", map[string]any{
		"v": 9, "user": s.user(s.botID), "guilds": guilds, "session_id": x.id, "private_channels": []any{}, "shard": []int{0, 1},
		"resume_gateway_url": s.wsURL() + "/resume", "application": map[string]any{"id": ApplicationID, "flags": s.flags()},
	})
	for _, g := range s.guilds {
		if !g.Unavailable {
			s.push(x, "GUILD_CREATE", s.guildWire(g))
		}
	}
}

func (s *Server) resume(l *link, d json.RawMessage) {
	var p struct {
		Token     string `json:"token"`
		SessionID string `json:"session_id"`
		Seq       int64  `json:"seq"`
	}
	if json.Unmarshal(d, &p) != nil {
		s.send(l, frame{close: closeDecode})
		return
	}
	c := &s.connects[l.index]
	c.Op, c.Session, c.Seq = opResume, p.SessionID, p.Seq
	if s.revoked || p.Token != s.cfg.Token && p.Token != "Bot "+s.cfg.Token {
		s.send(l, frame{close: closeToken})
		return
	}
	if s.early(l) {
		return
	}
	i := slices.IndexFunc(s.sessions, func(x *session) bool { return x.id == p.SessionID })
	if i < 0 {
		s.send(l, frame{Op: opInvalid, D: false})
		return
	}
	x := s.sessions[i]
	if p.Seq > x.seq {
		s.send(l, frame{close: closeSequence})
		return
	}
	x.link, l.session = l, x
	for _, f := range x.log {
		if *f.S > p.Seq {
			s.send(l, f)
		}
	}
	s.push(x, "RESUMED", map[string]any{})
}

func (s *Server) wsURL() string { return "ws" + strings.TrimPrefix(s.root, "http") }

// dispatch tells every session that may know about an event; the lock is held.
func (s *Server) dispatch(kind string, data any) {
	defer s.touch()
	if s.reorder > 0 {
		s.held = append(s.held, event{kind, data})
		if len(s.held) < s.reorder {
			return
		}
		held := s.held
		s.held, s.reorder = nil, 0
		slices.Reverse(held)
		for _, e := range held {
			s.dispatch(e.kind, e.data)
		}
		return
	}
	for _, x := range slices.Clone(s.sessions) {
		if x.wants(kind, data) {
			s.push(x, kind, x.redact(s, data))
		}
	}
}

// push gives an event to one session.
func (s *Server) push(x *session, kind string, data any) {
	x.seq++
	seq := x.seq
	f := frame{Op: opDispatch, D: data, S: &seq, T: kind}
	x.log = append(x.log, f)
	if kind != "READY" && kind != "GUILD_CREATE" {
		if s.lose > 0 {
			s.lose--
			return
		}
		if s.double > 0 {
			s.double--
			s.send(x.link, f)
		}
	}
	s.send(x.link, f)
}

// wants reports whether the intents of a session let an event through.
func (x *session) wants(kind string, data any) bool {
	m, _ := data.(map[string]any)
	inGuild := m["guild_id"] != nil
	need := 0
	switch {
	case strings.HasPrefix(kind, "MESSAGE_REACTION"):
		need = intentDirectReaction
		if inGuild {
			need = intentGuildReactions
		}
	case strings.HasPrefix(kind, "MESSAGE_"):
		need = intentDirect
		if inGuild {
			need = intentGuildMessages
		}
	case strings.HasPrefix(kind, "GUILD_"), strings.HasPrefix(kind, "CHANNEL_"), strings.HasPrefix(kind, "THREAD_"):
		need = intentGuilds
	}
	return x.intents&need == need
}

// redact takes the content out of messages that the session may not read.
func (x *session) redact(s *Server, data any) any {
	m, ok := data.(map[string]any)
	author, isUser := m["author"].(User)
	if !ok || x.intents&intentContent != 0 || m["guild_id"] == nil || !isUser || author.ID == s.botID {
		return data
	}
	if mentions, ok := m["mentions"].([]any); ok {
		for _, u := range mentions {
			if one, ok := u.(map[string]any); ok && one["id"] == s.botID {
				return data
			}
		}
	}
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	out["content"], out["attachments"], out["embeds"], out["components"] = "", []any{}, []any{}, []any{}
	return out
}
