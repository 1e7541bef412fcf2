package app

import (
	"slices"
	"time"

	"understudy/failover/policy"
	"understudy/internal/secret"
	"understudy/llm"
)

// Bounds of what the catalogue adds to a list of models: of one provider, and altogether.
const (
	mostCatalogued = 300
	mostAvailable  = 1000
)

// selectable returns every model that an agent with these credentials can be set to: those that the bot
// can name, and behind them those of the catalogue for which there is a credential (spec/chat.md §3.3).
func (s *snapshot) selectable(health policy.Snapshot, now time.Time) []llm.ModelRef {
	list := s.known()
	seen := make(map[llm.ModelRef]bool, len(list))
	var providers []string // those that the configuration names lead
	for _, ref := range list {
		seen[ref] = true
		providers = append(providers, ref.Provider)
	}
	type sameKey struct { // what two names of one provider share
		key   secret.String
		first string
	}
	told, asked, added := map[sameKey]bool{}, map[string]bool{}, 0
	for _, id := range append(providers, s.registry.Providers()...) {
		models := s.registry.Catalogued(id)
		if asked[id] || len(models) == 0 {
			continue
		}
		asked[id] = true
		profiles := s.profiles(health, llm.ModelRef{Provider: id, Model: models[0]}, now)
		if p, cred, ok := s.Virtual(id); ok && len(profiles) == 1 && profiles[0] == p.ID {
			x := sameKey{cred.Secret, models[0]}
			if told[x] {
				continue
			}
			told[x] = true
		}
		if len(profiles) == 0 {
			continue
		}
		for _, m := range models[:min(len(models), mostCatalogued, mostAvailable-added)] {
			if ref := (llm.ModelRef{Provider: id, Model: m}); !seen[ref] {
				list, added = append(list, ref), added+1
			}
		}
	}
	return list
}

// reachable reports whether a provider is one that this bot has to do with: it or a model of it is named,
// or it can be asked with a credential of the environment or of a store. One that asks for no credential
// may be on this machine or not.
func (s *snapshot) reachable(id string, stores ...policy.Snapshot) bool {
	if _, err := s.Client(id); err != nil {
		return false
	}
	if _, configured := s.cfg.Models.Providers[id]; configured {
		return true
	}
	if _, cred, ok := s.Virtual(id); ok && cred.Kind != llm.KindNone {
		return true
	}
	of := func(ref llm.ModelRef) bool { return ref.Provider == id }
	stored := func(p policy.Profile) bool { return p.ID.Provider() == id && (p.HasSecret || p.HasRefresh) }
	return slices.ContainsFunc(s.known(), of) ||
		slices.ContainsFunc(stores, func(h policy.Snapshot) bool { return slices.ContainsFunc(h.Profiles, stored) })
}
