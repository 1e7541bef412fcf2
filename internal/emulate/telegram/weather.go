package telegram

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// Weather is how likely things go wrong by chance, each from 0 to 1. The same Seed and the same calls
// give the same weather.
type Weather struct {
	Seed uint64

	Drop      float64 // a call is lost on the way
	DropAfter float64 // a call is done, its answer is lost
	Limited   float64 // 429, with a wait of 1 to 5 s; never for getUpdates
	Ill       float64 // 502 with a page of a proxy
	Slow      float64 // a call takes up to SlowBy
	SlowBy    time.Duration
	Duplicate float64 // an update comes twice, under two ids
}

type weather struct {
	Weather
	rand *rand.Rand
}

// SetWeather lets things go wrong by chance from now on; the zero value ends it. Injected faults go
// first.
func (s *Server) SetWeather(w Weather) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.weather = nil
	if w != (Weather{}) {
		s.weather = &weather{Weather: w, rand: rand.New(rand.NewPCG(w.Seed, 1))}
	}
}

func (w *weather) roll(chance float64) bool { return chance > 0 && w.rand.Float64() < chance }

// fault is what happens to the next call; the server's lock is held.
func (w *weather) fault(method string) *fault {
	var f Fault
	if w.SlowBy > 0 && w.roll(w.Slow) {
		f.Delay = time.Duration(w.rand.Int64N(int64(w.SlowBy)))
	}
	switch {
	case w.roll(w.Drop):
		f.Drop = true
	case w.roll(w.DropAfter):
		f.DropAfter = true
	case w.roll(w.Ill):
		f.Status, f.Body = http.StatusBadGateway, "<html>502 Bad Gateway</html>"
	case method != "getUpdates" && w.roll(w.Limited):
		f.Status, f.RetryAfter = http.StatusTooManyRequests, time.Duration(1+w.rand.IntN(5))*time.Second
	case f.Delay == 0:
		return nil
	}
	return &fault{Fault: f}
}
