package gateway

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// Bounds of a call by a platform (spec/chat.md §8 S6).
const (
	hookReadTime  = 5 * time.Second
	hookWriteTime = 10 * time.Second // a platform that gets no answer for so long calls again
)

// reserved are the first elements of the paths that the listener itself serves.
var reserved = []string{"", "api", "login", "healthz", "readyz", "startupz", "status", "metrics"}

// CheckWebhook reports why a path cannot be one that a platform calls.
func CheckWebhook(p string) error {
	first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	switch {
	case !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.ContainsAny(p, "?#%{} \\"):
		return fmt.Errorf("%q is not a path such as /slack/events", p)
	case slices.Contains(reserved, first):
		return fmt.Errorf("%q belongs to the bot itself; choose another path", p)
	}
	if _, err := pageFiles.Open("page" + p); err == nil {
		return fmt.Errorf("%q is a file of the page; choose another path", p)
	}
	return nil
}

// SetWebhooks replaces the handlers of what platforms call, by path; nil serves none. They are not behind the guard
// of the page, since a platform has neither our host name nor our token: each proves itself who is calling. A body is
// cut at 1 MiB and must arrive within five seconds. It may be called while the server runs.
func (s *Server) SetWebhooks(handlers map[string]http.Handler) { s.hooks.Store(&handlers) }

// hook returns the handler of a path that a platform calls, nil = there is none.
func (s *Server) hook(path string) http.Handler {
	if m := s.hooks.Load(); m != nil {
		return (*m)[path]
	}
	return nil
}

// route sends what platforms call past the guard.
func (s *Server) route(guarded http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hook := s.hook(r.URL.Path)
		if hook == nil {
			guarded.ServeHTTP(w, r)
			return
		}
		now := time.Now()
		limits := http.NewResponseController(w)
		_ = limits.SetReadDeadline(now.Add(hookReadTime)) // not offered by every writer; the server's own limits bind then
		_ = limits.SetWriteDeadline(now.Add(hookWriteTime))
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		hook.ServeHTTP(w, r)
	})
}
