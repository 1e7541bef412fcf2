package telegram

import (
	"net/http"
	"time"
)

// Fault is something that goes wrong, once by default. The kinds are tried in the order of the
// fields Hang, Drop, Body, Status; with none of them the call is done and DropAfter decides
// whether the bot hears about it.
type Fault struct {
	// Method is a method of the API, or "webhook" for deliveries, of which Delay, Drop and DropAfter
	// apply; "" = any method but getUpdates.
	Method string
	Chat   int64 // 0 = any
	After  int   // so many matching calls work first
	Times  int   // how often; 0 = once, negative = from now on

	Delay       time.Duration // wait first
	Hang        bool          // never answer
	Drop        bool          // cut the connection, do nothing
	Body        string        // answer this instead, with Status (a proxy's error page)
	Status      int           // refuse with this error code
	Description string        // text of the refusal; "" = the usual one of the code
	RetryAfter  time.Duration // parameters.retry_after of the refusal
	DropAfter   bool          // do it, then cut the connection
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

const webhookMethod = "webhook"

// quiet are the methods that a Fault without a Method leaves alone.
func quiet(method string) bool { return method == "getUpdates" || method == webhookMethod }

// due returns the fault for a call; the lock is held.
func (s *Server) due(c Call) *fault {
	for _, f := range s.faults {
		if f.Method != c.Method && (f.Method != "" || quiet(c.Method)) || f.Chat != 0 && f.Chat != c.Chat() {
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
	if s.weather != nil {
		return s.weather.fault(c.Method)
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
		if f.Status != 0 {
			w.WriteHeader(f.Status)
		}
		_, _ = w.Write([]byte(f.Body)) // the client may be gone
	case f.Status != 0:
		write(w, f.refusal())
	default:
		return true
	}
	return false
}

func (f *fault) refusal() *reply {
	r := refuse(f.Status, "%s", f.Description)
	if f.Description == "" {
		r.Description = http.StatusText(f.Status)
	}
	if f.RetryAfter > 0 {
		r.Parameters = &parameters{RetryAfter: int(f.RetryAfter.Seconds())}
	}
	return r
}
