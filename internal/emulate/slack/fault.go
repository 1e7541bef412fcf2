package slack

import (
	"net/http"
	"time"
)

// Fault is something that goes wrong, once by default. The kinds are tried in the order of the
// fields Hang, Drop, Body, Error; with none of them the call is done and DropAfter decides whether
// the bot hears about it.
type Fault struct {
	Method  string // "" = any but apps.connections.open; "respond" = a response URL
	Channel string // "" = any
	After   int    // so many matching calls work first
	Times   int    // how often; 0 = once, negative = from now on

	Delay      time.Duration // wait first
	Hang       bool          // never answer
	Drop       bool          // cut the connection, do nothing
	Body       string        // answer this instead, with Status (a proxy's error page)
	Error      string        // refuse with this error code
	Needed     string        // with missing_scope
	Status     int           // of Body or Error; 0 = 200
	RetryAfter time.Duration // makes the refusal a 429
	DropAfter  bool          // do it, then cut the connection
}

type fault struct {
	Fault
	seen, used int
}

// Inject adds a fault. Of several that match a call the first added is used.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &fault{Fault: f})
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// due returns the fault for a call; the lock is held.
func (s *Server) due(c Call) *fault {
	for _, f := range s.faults {
		if f.Method != c.Method && (f.Method != "" || c.Method == "apps.connections.open") || f.Channel != "" && f.Channel != c.Channel() {
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
		case <-s.ctx.Done():
			return false
		}
	}
	switch {
	case f.Drop:
		cut(w)
	case f.Body != "":
		w.Header().Set("Content-Type", "text/html")
		if f.Status != 0 {
			w.WriteHeader(f.Status)
		}
		_, _ = w.Write([]byte(f.Body)) // the client may be gone
	case f.RetryAfter > 0:
		s.write(w, nil, &refusal{code: "ratelimited", status: http.StatusTooManyRequests, retryAfter: f.RetryAfter})
	case f.Error != "":
		no := &refusal{code: f.Error, status: f.Status, needed: f.Needed}
		if f.Needed != "" {
			no.provided = "chat:write"
		}
		s.write(w, nil, no)
	default:
		return true
	}
	return false
}
