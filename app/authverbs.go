package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy/authstore"
	"understudy/authstore/imports"
	"understudy/config"
	"understudy/failover/policy"
	"understudy/gateway"
	"understudy/internal/secret"
	"understudy/llm"
)

// NewCredential is what `bot auth add` stores.
type NewCredential struct{ Agent, Profile, Type, FromEnv string }

// withStore opens an agent's credential store beside a bot that may be running.
func withStore(ctx context.Context, o Options, std Std, agent string, f func(*authstore.Store) error) int {
	return withKeys(ctx, o, std, func(k *keyring) error {
		if agent == "" {
			agent = k.cfg.DefaultAgent()
		}
		store, err := k.open(ctx, agent)
		if err != nil {
			return err
		}
		return f(store)
	})
}

// withKeys gives f the credential stores of all agents.
func withKeys(_ context.Context, o Options, std Std, f func(*keyring) error) int {
	cfg, _, err := config.Load(loadOptions(o))
	if err != nil {
		return fail(std, err)
	}
	k, err := newKeyring(o, cfg)
	if err != nil {
		return fail(std, err)
	}
	if err := errors.Join(f(k), k.close()); err != nil {
		return fail(std, err)
	}
	return ExitOK
}

// AuthAdd is `bot auth add`. The secret never comes from an argument: those stand in the shell's
// history and in process lists.
func AuthAdd(ctx context.Context, o Options, std Std, n NewCredential) int {
	id := llm.ProfileID(n.Profile)
	if id.Provider() == "" || id.Name() == "" {
		return fail(std, fmt.Errorf("%q is not a profile id: write provider:name, for example openai:work", n.Profile))
	}
	text, err := readSecret(ctx, o, std, n)
	if err != nil {
		return fail(std, err)
	}
	p, err := newProfile(id, llm.CredentialKind(n.Type), text)
	if err != nil {
		return fail(std, err)
	}
	return withKeys(ctx, o, std, func(k *keyring) error {
		if n.Agent == "" {
			n.Agent = k.cfg.DefaultAgent()
		}
		s, err := k.open(ctx, n.Agent)
		if err != nil {
			return err
		}
		if err := s.Put(ctx, p); err != nil {
			return err
		}
		if known, hint := k.cfg.KnownProvider(id.Provider()); !known {
			fmt.Fprintf(std.Out, "Stored %s (%s).\n", p.ID, n.Type)
			fmt.Fprintf(std.Err, "bot: there is no provider %q, so nothing uses it (%s). To take it back: bot auth remove %s\n", id.Provider(), hint, p.ID)
			return nil
		}
		fmt.Fprintf(std.Out, "Stored %s (%s). %s\n", p.ID, n.Type, k.announce(ctx, o))
		return nil
	})
}

// askingTime is how long a running bot may take to look for models again.
const askingTime = 10 * time.Second

// announce returns when a new credential counts, and sees to it. With configured models that is at
// once. Without them the bot found its models when it started, before the credential was there; so
// one that runs is asked to look again.
func (k *keyring) announce(ctx context.Context, o Options) string {
	if !k.cfg.Agent("").Models.Primary.IsZero() {
		return "A running bot uses it from now on."
	}
	ctx, cancel := context.WithTimeout(ctx, askingTime)
	defer cancel()
	c, err := remote(o)
	if err == nil {
		err = c.Reload(ctx)
	}
	switch {
	case errors.Is(err, gateway.ErrNoServer):
		return "The bot uses it when it starts."
	case err != nil:
		return "A running bot uses it after: bot reload"
	}
	return "The running bot uses it from now on."
}

// newProfile makes a profile of what was pasted. A sign-in is a JSON object as other programs store
// it, or a bare refresh token.
func newProfile(id llm.ProfileID, kind llm.CredentialKind, text secret.String) (authstore.Profile, error) {
	p := authstore.Profile{ID: id, Kind: kind, Secret: text}
	if kind != llm.KindOAuth {
		return p, nil
	}
	if raw := []byte(text.Reveal()); bytes.HasPrefix(raw, []byte("{")) {
		p, err := imports.Credential(raw, id.Provider())
		if err != nil {
			return p, fmt.Errorf("this sign-in cannot be used: %w", err)
		}
		if p.Kind != llm.KindOAuth {
			return p, fmt.Errorf("this is no sign-in but of the type %s", p.Kind)
		}
		p.ID = id
		return p, nil
	}
	return authstore.Profile{ID: id, Kind: kind, Refresh: text, Expires: time.UnixMilli(1)}, nil
}

// AuthOrderGet is `bot auth order get`.
func AuthOrderGet(ctx context.Context, o Options, std Std, agent, provider string) int {
	provider = llm.NormalizeProvider(provider)
	return withStore(ctx, o, std, agent, func(s *authstore.Store) error {
		orders, err := s.Orders(ctx)
		if err != nil {
			return err
		}
		switch ids, set := orders[provider]; {
		case !set:
			fmt.Fprintf(std.Out, "%s has no stored order; auth.order or the usual one counts.\n", provider)
		case len(ids) == 0:
			fmt.Fprintf(std.Out, "No profile of %s is used.\n", provider)
		default:
			for i, id := range ids {
				fmt.Fprintf(std.Out, "%d. %s\n", i+1, id)
			}
		}
		return nil
	})
}

// AuthOrderSet is `bot auth order set`. Without profiles none of the provider's is used.
func AuthOrderSet(ctx context.Context, o Options, std Std, agent, provider string, profiles []string) int {
	ids := make([]llm.ProfileID, len(profiles))
	for i, p := range profiles {
		ids[i] = llm.ProfileID(p)
	}
	return withKeys(ctx, o, std, func(k *keyring) error {
		if agent == "" {
			agent = k.cfg.DefaultAgent()
		}
		s, err := k.open(ctx, agent)
		if err != nil {
			return err
		}
		if err := s.SetOrder(ctx, provider, ids); err != nil {
			return err
		}
		fmt.Fprintf(std.Out, "Profiles of %s are tried in this order: %s\n", llm.NormalizeProvider(provider), orNone(profiles))
		return k.warnOfStrangers(ctx, o, std, s, llm.NormalizeProvider(provider))
	})
}

// warnOfStrangers names the profiles of a stored order that are not there: a misspelled one would
// otherwise be noticed when it is needed.
func (k *keyring) warnOfStrangers(ctx context.Context, o Options, std Std, s *authstore.Store, provider string) error {
	health, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	world, err := k.world(ctx, o)
	if err != nil {
		return err
	}
	pool := world.pool(health, provider)
	stale := policy.Order(pool, health.Health, "", o.Clock.Now()).Stale
	for _, id := range stale {
		fmt.Fprintf(std.Err, "bot: there is no %s yet; it is passed over until there is\n", id)
	}
	if len(stale) > 0 && len(stale) == len(pool.Override) {
		fmt.Fprintf(std.Err, "bot: until then the other credentials of %s are used\n", provider)
	}
	return nil
}

// AuthOrderClear is `bot auth order clear`.
func AuthOrderClear(ctx context.Context, o Options, std Std, agent, provider string) int {
	return withStore(ctx, o, std, agent, func(s *authstore.Store) error {
		err := s.ClearOrder(ctx, provider)
		if err == nil {
			fmt.Fprintf(std.Out, "The stored order of %s is gone; auth.order of the configuration or the usual one counts.\n", provider)
		}
		return err
	})
}

// AuthEnable is `bot auth enable`: it clears what keeps a profile, or all of a provider, from use.
func AuthEnable(ctx context.Context, o Options, std Std, agent, what string) int {
	return withStore(ctx, o, std, agent, func(s *authstore.Store) error {
		ids, err := clearHealth(ctx, s, what)
		for _, id := range ids {
			fmt.Fprintf(std.Out, "%s is in use again.\n", id)
		}
		if err == nil && len(ids) == 0 {
			fmt.Fprintf(std.Out, "Nothing is recorded against %s.\n", what)
		}
		return err
	})
}

// clearHealth forgets what is recorded against a profile, or against all profiles of a provider, and returns the cleared
// ones in order.
func clearHealth(ctx context.Context, s *authstore.Store, what string) ([]llm.ProfileID, error) {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	ids := map[llm.ProfileID]bool{}
	for k := range snap.Health {
		if string(k.Profile) == what || k.Profile.Provider() == llm.NormalizeProvider(what) {
			ids[k.Profile] = true
		}
	}
	var cleared []llm.ProfileID
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if err := s.ClearHealth(ctx, id); err != nil {
			return cleared, err
		}
		cleared = append(cleared, id)
	}
	return cleared, nil
}

// AuthRemove is `bot auth remove`.
func AuthRemove(ctx context.Context, o Options, std Std, agent, profile string) int {
	return withStore(ctx, o, std, agent, func(s *authstore.Store) error {
		if err := s.Remove(ctx, llm.ProfileID(profile)); err != nil {
			return err
		}
		fmt.Fprintf(std.Out, "Removed %s.\n", profile)
		return nil
	})
}

// orNone lists profiles; an empty order means to use none.
func orNone(profiles []string) string {
	if len(profiles) == 0 {
		return "none is used"
	}
	return strings.Join(profiles, ", ")
}
