package authstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"understudy/authstore/internal/authdb"
	"understudy/failover/policy"
	"understudy/internal/secret"
	"understudy/llm"
)

// Profile is one stored credential (spec/failover.md §5.1).
type Profile struct {
	ID   llm.ProfileID // provider:name; the provider is stored in its one spelling
	Kind llm.CredentialKind
	// Secret is the API key, the access token or the bearer token. An OAuth profile may lack it as
	// long as it has Refresh.
	Secret  secret.String
	Refresh secret.String // OAuth only
	Expires time.Time     // of Secret; zero = unknown or never
	// Reference says where a key or token lies that is not in Secret.
	Reference Reference

	Email, AccountID, ProjectID, EnterpriseURL string

	// Extra are fields of an imported credential that this program does not know. They are kept
	// and may be secret.
	Extra Extra

	version int64
}

// Extra is a set of unknown fields. It never shows them.
type Extra map[string]json.RawMessage

// String returns the mask, or "" when there is nothing to hide.
func (e Extra) String() string {
	if len(e) == 0 {
		return ""
	}
	return secret.Mask
}

// GoString keeps %#v from showing the fields.
func (e Extra) GoString() string { return "authstore.Extra(" + e.String() + ")" }

// LogValue keeps slog from seeing the fields.
func (e Extra) LogValue() slog.Value { return slog.StringValue(e.String()) }

// Validate returns what makes p unusable.
func (p Profile) Validate() error {
	if p.ID.Provider() == "" || p.ID.Name() == "" {
		return fmt.Errorf("%q is not a profile id: write provider:name", p.ID)
	}
	switch p.Kind {
	case llm.KindAPIKey, llm.KindToken:
		if p.Secret.IsZero() && p.Reference.IsZero() {
			return fmt.Errorf("profile %s has no secret", p.ID)
		}
	case llm.KindOAuth:
		if p.Secret.IsZero() && p.Refresh.IsZero() {
			return fmt.Errorf("profile %s has neither an access nor a refresh token", p.ID)
		}
	default:
		return fmt.Errorf("profile %s has the unknown type %q: api_key, oauth or token", p.ID, p.Kind)
	}
	return nil
}

// normal returns id with its provider in the one spelling.
func normal(id llm.ProfileID) llm.ProfileID {
	if !strings.Contains(string(id), ":") {
		return id
	}
	return llm.ProfileID(id.Provider() + ":" + id.Name())
}

// Put stores p under its id. A secret that the id did not have before, which is what a login or a
// new key is, clears every window and count of the profile (spec/failover.md §7).
func (s *Store) Put(ctx context.Context, p Profile) error {
	p.ID = normal(p.ID)
	if err := p.Validate(); err != nil {
		return err
	}
	err := s.write(ctx, func(c *change) error {
		old, err := c.GetProfile(ctx, string(p.ID))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := c.putProfile(ctx, p, s.deps.Clock.Now()); err != nil {
			return err
		}
		if old.Secret == p.Secret.Reveal() && old.Refresh == p.Refresh.Reveal() {
			return nil
		}
		return c.clearHealth(ctx, p.ID)
	})
	if err != nil {
		return fmt.Errorf("storing profile %s: %w", p.ID, err)
	}
	s.forget(p.ID)
	s.flush(ctx)
	return nil
}

func (c *change) putProfile(ctx context.Context, p Profile, now time.Time) error {
	extra := []byte("{}")
	if len(p.Extra) > 0 {
		var err error
		if extra, err = json.Marshal(p.Extra); err != nil {
			return fmt.Errorf("unknown fields: %w", err)
		}
	}
	reference, err := p.Reference.text()
	if err != nil {
		return err
	}
	return c.PutProfile(ctx, authdb.PutProfileParams{
		ID: string(p.ID), Kind: string(p.Kind), Secret: p.Secret.Reveal(), Refresh: p.Refresh.Reveal(), ExpiresAt: millis(p.Expires),
		Email: p.Email, AccountID: p.AccountID, ProjectID: p.ProjectID, EnterpriseUrl: p.EnterpriseURL,
		ExtraJson: string(extra), Version: c.state.revision + 1, UpdatedAt: millis(now), ReferenceJson: reference,
	})
}

// Get returns a profile with its secrets, or ErrNoProfile.
func (s *Store) Get(ctx context.Context, id llm.ProfileID) (Profile, error) {
	p, _, err := s.find(ctx, normal(id))
	return p, err
}

// find returns a profile as it counts now, and the store it lives in.
func (s *Store) find(ctx context.Context, id llm.ProfileID) (Profile, *Store, error) {
	row, err := s.query.GetProfile(ctx, string(id))
	switch {
	case errors.Is(err, sql.ErrNoRows) && s.deps.Default != nil:
		return s.deps.Default.find(ctx, id)
	case errors.Is(err, sql.ErrNoRows):
		return Profile{}, nil, fmt.Errorf("%w: %s", ErrNoProfile, id)
	case err != nil:
		return Profile{}, nil, fmt.Errorf("reading profile %s: %w", id, err)
	}
	p, err := fromProfile(row)
	if err != nil {
		return Profile{}, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if u, ok := s.unsaved[id]; ok && u.version == p.version {
		p = u // refreshed, but the file could not be written yet
	}
	return p, s, nil
}

func fromProfile(r authdb.Profile) (Profile, error) {
	p := Profile{
		ID: llm.ProfileID(r.ID), Kind: llm.CredentialKind(r.Kind), Secret: secret.New(r.Secret), Refresh: secret.New(r.Refresh),
		Expires: fromMillis(r.ExpiresAt), Email: r.Email, AccountID: r.AccountID, ProjectID: r.ProjectID,
		EnterpriseURL: r.EnterpriseUrl, version: r.Version,
	}
	var err error
	if p.Reference, err = parseReference(r.ReferenceJson); err != nil {
		return Profile{}, fmt.Errorf("profile %s: %w", p.ID, err)
	}
	if r.ExtraJson != "{}" {
		if err := json.Unmarshal([]byte(r.ExtraJson), &p.Extra); err != nil {
			return Profile{}, fmt.Errorf("unknown fields of profile %s: %w", p.ID, err)
		}
	}
	return p, nil
}

// Remove deletes a profile with everything known about it. An order that names it keeps the name.
func (s *Store) Remove(ctx context.Context, id llm.ProfileID) error {
	id = normal(id)
	err := s.write(ctx, func(c *change) error {
		n, err := c.DeleteProfile(ctx, string(id))
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrNoProfile
		}
		if err := c.DeleteHealth(ctx, string(id)); err != nil {
			return err
		}
		return c.DeleteLastGood(ctx, string(id))
	})
	if err != nil {
		return fmt.Errorf("removing profile %s: %w", id, err)
	}
	s.forget(id)
	s.flush(ctx)
	return nil
}

// ClearHealth ends every window of a profile and forgets its counts; when it was last used stays.
func (s *Store) ClearHealth(ctx context.Context, id llm.ProfileID) error {
	id = normal(id)
	if owner := s.owner(id); owner != s {
		return owner.ClearHealth(ctx, id)
	}
	if err := s.write(ctx, func(c *change) error { return c.clearHealth(ctx, id) }); err != nil {
		return fmt.Errorf("clearing the health of %s: %w", id, err)
	}
	return nil
}

func (c *change) clearHealth(ctx context.Context, id llm.ProfileID) error {
	used := c.state.Health[policy.Key{Profile: id}].LastUsed
	if err := c.DeleteHealth(ctx, string(id)); err != nil {
		return err
	}
	if used.IsZero() {
		return nil
	}
	row, err := toRow(policy.Key{Profile: id}, policy.Row{LastUsed: used})
	if err != nil {
		return err
	}
	return c.PutHealth(ctx, row)
}

// SetOrder stores the order in which this agent tries the profiles of a provider; an empty list
// means to use none of them (spec/failover.md §5.2).
func (s *Store) SetOrder(ctx context.Context, provider string, ids []llm.ProfileID) error {
	provider = llm.NormalizeProvider(provider)
	list := make([]llm.ProfileID, len(ids))
	for i, id := range ids {
		if list[i] = normal(id); list[i].Provider() != provider {
			return fmt.Errorf("profile %s does not belong to provider %s", id, provider)
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("order of %s: %w", provider, err)
	}
	err = s.write(ctx, func(c *change) error {
		return c.PutOrder(ctx, authdb.PutOrderParams{Provider: provider, ProfilesJson: string(text)})
	})
	if err != nil {
		return fmt.Errorf("storing the order of %s: %w", provider, err)
	}
	return nil
}

// ClearOrder removes the stored order of a provider; the configured one counts again.
func (s *Store) ClearOrder(ctx context.Context, provider string) error {
	provider = llm.NormalizeProvider(provider)
	if err := s.write(ctx, func(c *change) error { return c.DeleteOrder(ctx, provider) }); err != nil {
		return fmt.Errorf("clearing the order of %s: %w", provider, err)
	}
	return nil
}

// flush makes a credential that was just written survive a power loss. A file that is busy is no
// reason to call the write a failure.
func (s *Store) flush(ctx context.Context) {
	if err := s.db.Flush(ctx); err != nil {
		s.deps.Log.Warn("auth store is not synced yet", "path", s.db.Path(), "error", err)
	}
}
