package discord

import (
	"net/http"
	"strings"
	"time"
)

// Fault is something that goes wrong with a REST call, once by default. The kinds are tried in the
// order of the fields Hang, Drop, Body, Status; with none of them the call is done and DropAfter
// decides whether the bot hears about it.
type Fault struct {
	Method string // "" = any
	Path   string // part of the path below /api/v9; "" = any
	After  int    // so many matching calls work first
	Times  int    // how often; 0 = once, negative = from now on

	Delay      time.Duration // wait first
	Hang       bool          // never answer
	Drop       bool          // cut the connection, do nothing
	Body       string        // answer this instead, with Status (a proxy's page)
	Status     int           // refuse with this status
	Code       int           // code of the refusal
	Message    string        // text of the refusal; "" = the usual one of the status
	RetryAfter time.Duration // of a refusal with 429, in body and header
	Global     bool          // the 429 is for the whole bot
	DropAfter  bool          // do it, then cut the connection
}

type fault struct {
	Fault
	seen, used int
}

// GatewayFault is what goes wrong with the next connection to the gateway.
type GatewayFault struct {
	Fine      bool   // nothing
	NoHello   bool   // the server says nothing
	NoReady   bool   // identify or resume gets no answer
	Close     int    // it gets this close code
	Reconnect bool   // it gets the request to reconnect
	Invalid   bool   // it gets "invalid session", with Resumable
	Resumable bool   //
	Raw       string // it gets this frame first
}

// Inject adds a fault. Of several that match a call the first added is used.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{Fault: f})
}

// ClearFaults removes all faults of calls and connections.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.gateFault = nil, nil
}

// InjectGateway adds faults for the next connections, one each.
func (s *Server) InjectGateway(f ...GatewayFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateFault = append(s.gateFault, f...)
}

// Cut breaks the gateway connection without a word.
func (s *Server) Cut() { s.toLink(frame{cut: true}) }

// Away breaks the connection, forgets the sessions and takes no new connection until Back: what happens
// meanwhile is in the channels' histories only.
func (s *Server) Away() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.sessions = true, nil
	s.send(s.current, frame{cut: true})
}

// Back takes connections again.
func (s *Server) Back() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = false
}

// Revoke makes the bot's token worthless.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked, s.sessions = true, nil
	s.send(s.current, frame{close: closeToken})
}

// Expire ends the time in which an interaction can be answered.
func (s *Server) Expire(interaction string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.waiting[interaction]; i != nil {
		i.At = i.At.Add(-tokenLife)
	}
}

// CloseWith ends the gateway connection with a code.
func (s *Server) CloseWith(code int) { s.toLink(frame{close: code}) }

// Reconnect asks the bot to reconnect.
func (s *Server) Reconnect() { s.toLink(frame{Op: opReconnect}) }

// AskHeartbeat asks the bot for a heartbeat.
func (s *Server) AskHeartbeat() { s.toLink(frame{Op: opHeartbeat}) }

// Raw sends a frame as it stands.
func (s *Server) Raw(text string) { s.toLink(frame{raw: text}) }

func (s *Server) toLink(f frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send(s.current, f)
}

// Invalidate ends the session; with resumable the bot is only asked to resume.
func (s *Server) Invalidate(resumable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.current; l != nil && l.session != nil && !resumable {
		s.forget(l.session)
	}
	s.send(s.current, frame{Op: opInvalid, D: resumable})
}

// Forget ends all sessions without a word: they cannot be resumed.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = nil
}

// Deafen makes the present connection half-open: the server reads, but sends neither events nor
// acknowledgements. What happens meanwhile can be replayed.
func (s *Server) Deafen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current.deaf = true
	}
}

// Lose drops the next events on their way; only a replay brings them.
func (s *Server) Lose(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = n
}

// Duplicate sends each of the next events twice.
func (s *Server) Duplicate(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.double = n
}

// Repeat sends the last event of each session once more.
func (s *Server) Repeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		s.send(x.link, x.log[len(x.log)-1])
	}
}

// Reorder sends the next events in reverse order, once there are so many.
func (s *Server) Reorder(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reorder = n
}

// Dispatch sends an event of any kind to all sessions.
func (s *Server) Dispatch(kind string, data map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch(kind, data)
}

// Connects returns the connections to the gateway so far.
func (s *Server) Connects() []Connect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Connect(nil), s.connects...)
}

// Online reports whether the bot is connected and identified.
func (s *Server) Online() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current != nil && s.current.session != nil
}

// due returns the fault for a call; the lock is held.
func (s *Server) due(c Call) *fault {
	for _, f := range s.faults {
		if f.Method != "" && f.Method != c.Method || !strings.Contains(c.Path, f.Path) {
			continue
		}
		if f.Times >= 0 && f.used >= max(f.Times, 1) {
			continue
		}
		if f.seen++; f.seen <= f.After {
			continue
		}
		f.used++
		return f
	}
	return nil
}

// fail does what goes wrong before a call is done, and reports whether the call is done at all.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, f *fault) bool {
	if f.Delay > 0 || f.Hang {
		var expired <-chan time.Time
		if !f.Hang {
			timer := time.NewTimer(f.Delay)
			defer timer.Stop()
			expired = timer.C
		}
		select {
		case <-expired:
		case <-r.Context().Done():
			return false
		case <-s.closed:
			return false
		}
	}
	switch {
	case f.Drop:
		cut(w)
	case f.Body != "":
		w.Header().Set("Content-Type", "text/html")
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", seconds(f.RetryAfter))
		}
		if f.Status != 0 {
			w.WriteHeader(f.Status)
		}
		_, _ = w.Write([]byte(f.Body)) // the client may be gone
	case f.Status != 0:
		answer(w, f.refusal())
	default:
		return true
	}
	return false
}

func (f *fault) refusal() *refusal {
	text := f.Message
	if text == "" {
		text = http.StatusText(f.Status)
	}
	r := &refusal{Status: f.Status, Code: f.Code, Message: text}
	if f.Status == http.StatusTooManyRequests {
		r.limited(f.RetryAfter, f.Global)
	}
	return r
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}
