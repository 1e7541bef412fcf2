// Package redact keeps secrets out of the log. It knows the secrets the bot holds and replaces them
// exactly, and it knows what keys and tokens of the usual services look like (spec/chat.md §7.5).
// It cannot be switched off.
package redact

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"understudy/internal/secret"
)

// shortest is the least length of a secret that is replaced exactly: a shorter one would turn up in
// ordinary words.
const shortest = 6

// Redactor replaces secrets in texts. It is safe for concurrent use.
type Redactor struct {
	mu       sync.Mutex
	known    map[string]bool
	replacer atomic.Pointer[strings.Replacer]
	patterns *regexp.Regexp
}

// New returns a Redactor that knows the shapes of common keys.
func New() *Redactor {
	return &Redactor{known: map[string]bool{}, patterns: regexp.MustCompile(
		`xox[abprs]-[A-Za-z0-9-]{10,}` +
			`|xapp-[A-Za-z0-9-]{10,}` +
			`|\bhooks\.slack\.com/[A-Za-z0-9/_-]{10,}` + // who knows the address may answer for the bot
			`|\b[MNO][A-Za-z0-9_-]{17,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{25,}` + // a Discord bot
			`|/(?:interactions|webhooks)/\d{15,}/[A-Za-z0-9_-]{20,}` +
			`|\bbot\d{5,}:[A-Za-z0-9_-]{30,}` +
			`|\b\d{8,10}:[A-Za-z0-9_-]{35}\b` +
			`|\b(?:Bearer|Bot|Basic) [A-Za-z0-9._~+/=-]{16,}` +
			`|\bsk-[A-Za-z0-9_-]{16,}` +
			`|\bAIza[A-Za-z0-9_-]{30,}` +
			`|\bgsk_[A-Za-z0-9]{20,}` +
			`|\bxai-[A-Za-z0-9]{20,}` +
			`|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*` +
			`|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)}
}

// Add makes secrets known.
func (r *Redactor) Add(secrets ...secret.String) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.known)
	for _, s := range secrets {
		if text := s.Reveal(); len(text) >= shortest {
			r.known[text] = true
		}
	}
	if len(r.known) == before && r.replacer.Load() != nil {
		return
	}
	// The longest first: one that begins with another must not keep its end.
	all := slices.SortedFunc(maps.Keys(r.known), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(all))
	for _, text := range all {
		pairs = append(pairs, text, Masked(text))
	}
	r.replacer.Store(strings.NewReplacer(pairs...))
}

// Text returns s without secrets.
func (r *Redactor) Text(s string) string {
	if len(s) < shortest {
		return s
	}
	if known := r.replacer.Load(); known != nil {
		s = known.Replace(s)
	}
	if !mayHold(s) {
		return s
	}
	return r.patterns.ReplaceAllStringFunc(s, Masked)
}

// mayHold is a cheap test that spares most texts the patterns.
func mayHold(s string) bool {
	return len(s) >= 16 && (strings.ContainsAny(s, "-:_ .") || strings.HasPrefix(s, "AIza"))
}

// Masked shows enough of a long secret to recognise it, and nothing of a short one.
func Masked(s string) string {
	if len(s) < 18 {
		return secret.Mask
	}
	return s[:6] + "…" + s[len(s)-4:]
}
