package app

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"understudy/authstore"
	"understudy/llm"
)

// exported is the versioned form of spec/imports.md. Secrets are missing unless they were asked for.
type exported struct {
	Version    int                                    `json:"version"`
	Profiles   map[llm.ProfileID]exportedProfile      `json:"profiles"`
	Order      map[string][]llm.ProfileID             `json:"order"`
	LastGood   map[string]llm.ProfileID               `json:"lastGood"`
	UsageStats map[llm.ProfileID]usageView            `json:"usageStats"`
	Models     map[llm.ProfileID]map[string]usageView `json:"models,omitempty"`
}

type exportedProfile map[string]any

func exportDocument(ctx context.Context, s *authstore.Store, secrets bool, now time.Time) (exported, error) {
	doc := exported{
		Version: 1, Profiles: map[llm.ProfileID]exportedProfile{}, UsageStats: map[llm.ProfileID]usageView{}, Models: map[llm.ProfileID]map[string]usageView{},
	}
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return doc, err
	}
	doc.Order = snap.Orders
	if doc.LastGood, err = s.LastGood(ctx); err != nil {
		return doc, err
	}
	for _, v := range profileViews(snap, now) {
		doc.UsageStats[v.ID] = v.Usage
		if v.PerModel != nil {
			doc.Models[v.ID] = v.PerModel
		}
	}
	for _, known := range snap.Profiles {
		p, err := s.Get(ctx, known.ID)
		if err != nil {
			return doc, err
		}
		doc.Profiles[p.ID] = exportProfile(p, secrets)
	}
	return doc, nil
}

func exportProfile(p authstore.Profile, secrets bool) exportedProfile {
	e := exportedProfile{"type": p.Kind, "provider": p.ID.Provider()}
	for key, text := range map[string]string{"email": p.Email, "accountId": p.AccountID, "projectId": p.ProjectID, "enterpriseUrl": p.EnterpriseURL} {
		if text != "" {
			e[key] = text
		}
	}
	if !p.Expires.IsZero() {
		e["expires"] = p.Expires.UnixMilli()
	}
	key := map[llm.CredentialKind]string{llm.KindAPIKey: "key", llm.KindToken: "token", llm.KindOAuth: "access"}[p.Kind]
	if !p.Reference.IsZero() {
		e[key] = p.Reference
	}
	if !secrets {
		return e
	}
	for k, raw := range p.Extra {
		if _, taken := e[k]; !taken {
			e[k] = raw
		}
	}
	if !p.Secret.IsZero() {
		e[key] = p.Secret.Reveal()
	}
	if !p.Refresh.IsZero() {
		e["refresh"] = p.Refresh.Reveal()
	}
	return e
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
