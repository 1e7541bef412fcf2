package provider

import "understudy/llm"

// LocalURL returns the base URL of a provider that runs on this machine or in a private network; "" for
// the others, and for one that is no server.
func (r *Registry) LocalURL(id string) string {
	e, ok := r.entries[llm.NormalizeProvider(id)]
	if !ok || !e.local || e.cfg.API == Simulated {
		return ""
	}
	return e.cfg.BaseURL
}
