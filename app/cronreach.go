package app

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

// reach remembers which model servers of the own network can be reached.
type reach struct {
	mu   sync.Mutex
	seen map[string]reached // by address
}

type reached struct {
	ok bool
	at time.Time
}

// Times of the look whether a model server is there (spec/chat.md §5.7).
const (
	reachFor  = 5 * time.Minute
	reachTime = 3 * time.Second
)

// reachableModel reports whether a run has somebody to ask: false only when all its candidates are
// served on the own network by servers that do not answer. Such a run is skipped, not failed.
func (a *App) reachableModel(ctx context.Context, sel policy.Selection, models policy.Models) bool {
	registry := a.current.Load().registry
	for _, ref := range policy.Chain(sel, models) {
		base := registry.LocalURL(ref.Provider)
		if base == "" || a.reach.ok(ctx, a, ref.Provider, base) {
			return true
		}
	}
	return false
}

// ok looks whether a server answers, at most every five minutes.
func (r *reach) ok(ctx context.Context, a *App, provider, base string) bool {
	now := a.opts.Clock.Now()
	r.mu.Lock()
	known, found := r.seen[base]
	r.mu.Unlock()
	if found && now.Sub(known.at) < reachFor && !now.Before(known.at) {
		return known.ok
	}
	ok := a.answers(ctx, provider, base)
	if ctx.Err() != nil {
		return true // nothing was found out
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil || len(r.seen) > 1000 {
		r.seen = map[string]reached{}
	}
	r.seen[base] = reached{ok, now}
	return ok
}

// answers makes one request without a credential: any answer will do.
func (a *App) answers(ctx context.Context, provider, base string) bool {
	ctx, cancel := a.opts.Clock.WithTimeout(ctx, reachTime, llm.ErrIdle)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, base, http.NoBody)
	if err != nil {
		return true // the request itself will tell
	}
	var transport http.RoundTripper = &http.Transport{DialContext: (&net.Dialer{Timeout: reachTime}).DialContext, DisableKeepAlives: true}
	if a.opts.Transport != nil {
		transport = a.opts.Transport(provider)
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return true
}
