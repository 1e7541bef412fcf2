package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy/authstore"
	"understudy/internal/secret"
	"understudy/llm"
)

// The secrets that every World is seeded with. None of them may ever be seen outside the requests
// they belong to (spec/failover.md §16.10).
const (
	alphaKey     = "sk-proj-canary4lphaT7vQm2xR9bNc5LhWd8YzKe3uJ"
	betaKey      = "sk-ant-api03-canaryB3taW6nHs1dGt8kMv4QxZrCy0pLf"
	gammaAccess  = "canaryGammaAccessQ2wE5rT8yU1iO4pA7sD0fGhJ"
	gammaRefresh = "canaryGammaRefreshZ9xC6vB3nM0qW5eR8tY2uIo"
	spareKey     = "canarySpareKeyL4kJ7hG0fD3sA6pO9iU2yT5rE"
	pairKeyOne   = "canaryPairOneH3gF6dS9aP2oI5uY8tR1eW4qZ"
	pairKeyTwo   = "canaryPairTwoM7nB0vC3xZ6lK9jH2gF5dS8aQ"
	gatewayToken = "canaryGatewayTokenV8bN1mK4jH7gF0dS3aP6oI"
	botToken     = "110201543:AAcanaryBotTokenX5cV8bN1mQ4wE7rT0yU"
)

// Secrets returns everything that must stay hidden.
func Secrets() []string {
	return []string{alphaKey, betaKey, gammaAccess, gammaRefresh, spareKey, pairKeyOne, pairKeyTwo, gatewayToken, botToken[strings.Index(botToken, ":")+1:]}
}

// What the bot sends to the providers of these names, for answers that quote it.
const (
	AlphaKey   = alphaKey
	BetaKey    = betaKey
	GammaToken = gammaAccess
	SpareKey   = spareKey
)

// seed stores the credentials that are no part of the configuration.
func seed(ctx context.Context, state string, busy time.Duration) error {
	store, err := authstore.Open(ctx, authstore.Path(state, agent), authstore.Deps{BusyTimeout: busy})
	if err != nil {
		return err
	}
	for _, p := range []authstore.Profile{
		{ID: "beta:default", Kind: llm.KindAPIKey, Secret: secret.New(betaKey)},
		{
			ID: "gamma:me@example.com", Kind: llm.KindOAuth, Email: "me@example.com", Secret: secret.New(gammaAccess),
			Refresh: secret.New(gammaRefresh), Expires: time.Now().Add(24 * time.Hour),
		},
		{ID: "pair:one", Kind: llm.KindAPIKey, Secret: secret.New(pairKeyOne)},
		{ID: "pair:two", Kind: llm.KindAPIKey, Secret: secret.New(pairKeyTwo)},
		{ID: "spare:default", Kind: llm.KindAPIKey, Secret: secret.New(spareKey)},
	} {
		if err := store.Put(ctx, p); err != nil {
			return fmt.Errorf("seeding %s: %w", p.ID, err)
		}
	}
	return store.Close()
}

// Leak is a secret that was seen where it must not be.
type Leak struct {
	Where  string // "log", "chat", …
	Around string // the text around it, the secret masked
}

// FindLeaks looks for secrets, also in their common encodings, in everything that was written.
func FindLeaks(outputs map[string]string) []Leak {
	var leaks []Leak
	for where, text := range outputs {
		for _, s := range Secrets() {
			quoted, _ := json.Marshal(s)
			for _, form := range []string{s, string(quoted), strings.ReplaceAll(s, ":", "%3A"), s[:len(s)/2]} {
				if i := strings.Index(text, form); i >= 0 {
					around := text[max(0, i-120):min(len(text), i+len(form)+60)]
					leaks = append(leaks, Leak{where, strings.ReplaceAll(around, form, "<secret>")})
					break
				}
			}
		}
	}
	slices.SortFunc(leaks, func(a, b Leak) int { return strings.Compare(a.Where, b.Where) })
	return leaks
}

// writer collects what is written to it.
type writer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

// String returns what was written.
func (w *writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}
