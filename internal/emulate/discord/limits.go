package discord

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

const (
	messageWindow = 5 * time.Second
	otherRate     = 50
	otherWindow   = time.Second
)

// bucket counts the calls of one kind to one place.
type bucket struct {
	until time.Time
	used  int
}

// limit counts a call, states the limits in the header, and returns the refusal when there were too
// many.
func (s *Server) limit(w http.ResponseWriter, c Call) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	most, window := otherRate, otherWindow
	if c.match("POST", "channels/*/messages") {
		if s.cfg.MessageRate < 0 {
			return nil
		}
		most, window = s.cfg.MessageRate, messageWindow
	}
	key := c.Method + " " + c.parts[0]
	if len(c.parts) > 1 {
		key += " " + c.parts[1]
	}
	if len(c.parts) > 2 {
		key += " " + c.parts[2]
	}
	b := s.buckets[key]
	now := time.Now()
	if b == nil || !now.Before(b.until) {
		b = &bucket{until: now.Add(window)}
		s.buckets[key] = b
	}
	b.used++
	left := b.until.Sub(now)
	h := w.Header()
	h.Set("X-RateLimit-Limit", strconv.Itoa(most))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(most-b.used, 0)))
	h.Set("X-RateLimit-Reset", fmt.Sprintf("%.3f", float64(b.until.UnixMilli())/1000))
	h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", left.Seconds()))
	h.Set("X-RateLimit-Bucket", fmt.Sprintf("%x", len(key)))
	if b.used <= most {
		return nil
	}
	h.Set("X-RateLimit-Scope", "user")
	r := refuse(http.StatusTooManyRequests, 0, "")
	r.limited(left, false)
	return r
}

// seconds is the value of a Retry-After header.
func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
