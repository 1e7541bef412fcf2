package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy/authstore/signin"
	"understudy/failover/policy"
	"understudy/llm"
)

// Auth is the `auth` section: what is known about credentials, never the credentials themselves.
type Auth struct {
	// Profiles declares profiles by id.
	Profiles map[string]DeclaredProfile `yaml:"profiles"`
	// Order is the order in which the profiles of a provider are tried. An empty list means: none.
	Order     map[string][]string `yaml:"order"`
	Cooldowns Cooldowns           `yaml:"cooldowns"`
	// Providers says how one signs in, by provider id.
	Providers map[string]signin.Config `yaml:"providers"`
}

// DeclaredProfile is the metadata of one profile.
type DeclaredProfile struct {
	Provider string `yaml:"provider"`
	Mode     string `yaml:"mode" enum:"api_key|oauth|token"`
	Email    string `yaml:"email"` // to recognise it by; not used to sign in
}

// keyHint refuses secrets by their usual names (spec/failover.md §2).
func (DeclaredProfile) keyHint(key string) (text, hint string) {
	switch key {
	case "key", "apiKey", "api_key", "token", "secret", "password", "access", "accessToken", "access_token", "refresh", "refreshToken", "refresh_token", "bearer", "value", "credential", "credentials":
		return "a secret must not stand here", "store it with: bot auth add"
	}
	return "", ""
}

// Cooldowns is the `auth.cooldowns` section (spec/failover.md §2); nil = the default.
type Cooldowns struct {
	BillingBackoffHours           *float64           `yaml:"billingBackoffHours"`
	BillingBackoffHoursByProvider map[string]float64 `yaml:"billingBackoffHoursByProvider"`
	BillingMaxHours               *float64           `yaml:"billingMaxHours"`
	AuthPermanentBackoffMinutes   *float64           `yaml:"authPermanentBackoffMinutes"`
	AuthPermanentMaxMinutes       *float64           `yaml:"authPermanentMaxMinutes"`
	FailureWindowHours            *float64           `yaml:"failureWindowHours"`
	OverloadedProfileRotations    *int               `yaml:"overloadedProfileRotations"`
	OverloadedBackoffMs           *int               `yaml:"overloadedBackoffMs"`
	RateLimitedProfileRotations   *int               `yaml:"rateLimitedProfileRotations"`
}

// longestSpan bounds configured spans, so that arithmetic on them stays sane.
const longestSpan = 10 * 365 * 24 * time.Hour

// rules converts the section. A maximum below its base is raised to it.
func (c Cooldowns) rules(d *decoder, env Env) policy.Rules {
	const at = "auth.cooldowns."
	r := policy.DefaultRules()
	r.RetryAfterCap = env.RetryAfterCap
	span := func(v *float64, unit time.Duration, key string, to *time.Duration) {
		switch {
		case v == nil:
		case *v <= 0:
			d.fail(at+key, fmt.Sprintf("%g is not greater than 0", *v), "")
		case *v > float64(longestSpan)/float64(unit):
			d.fail(at+key, fmt.Sprintf("%g is more than ten years", *v), "")
		default:
			*to = max(time.Duration(*v*float64(unit)), time.Millisecond)
		}
	}
	count := func(v *int, key string, most int, to *int) {
		switch {
		case v == nil:
		case *v < 0 || *v > most:
			d.fail(at+key, fmt.Sprintf("%d is not between 0 and %d", *v, most), "")
		default:
			*to = *v
		}
	}
	span(c.BillingBackoffHours, time.Hour, "billingBackoffHours", &r.BillingBackoff)
	span(c.BillingMaxHours, time.Hour, "billingMaxHours", &r.BillingMax)
	span(c.AuthPermanentBackoffMinutes, time.Minute, "authPermanentBackoffMinutes", &r.AuthPermanentBackoff)
	span(c.AuthPermanentMaxMinutes, time.Minute, "authPermanentMaxMinutes", &r.AuthPermanentMax)
	span(c.FailureWindowHours, time.Hour, "failureWindowHours", &r.FailureWindow)
	count(c.OverloadedProfileRotations, "overloadedProfileRotations", 1000, &r.OverloadedRotations)
	count(c.RateLimitedProfileRotations, "rateLimitedProfileRotations", 1000, &r.RateLimitRotations)
	var ms int
	count(c.OverloadedBackoffMs, "overloadedBackoffMs", 3_600_000, &ms)
	r.OverloadedBackoff = time.Duration(ms) * time.Millisecond
	for _, provider := range slices.Sorted(maps.Keys(c.BillingBackoffHoursByProvider)) {
		hours := c.BillingBackoffHoursByProvider[provider]
		var own time.Duration
		span(&hours, time.Hour, join("billingBackoffHoursByProvider", provider), &own)
		if r.BillingByProvider == nil {
			r.BillingByProvider = map[string]time.Duration{}
		}
		r.BillingByProvider[llm.NormalizeProvider(provider)] = own
	}
	r.BillingMax = max(r.BillingMax, r.BillingBackoff)
	r.AuthPermanentMax = max(r.AuthPermanentMax, r.AuthPermanentBackoff)
	return r
}

// resolveAuth checks profiles and orders and files them under their providers.
func (c *Config) resolveAuth(d *decoder) {
	c.rules = c.Auth.Cooldowns.rules(d, c.Env)
	c.pools = map[string]policy.Pool{}
	for _, id := range slices.Sorted(maps.Keys(c.Auth.Profiles)) {
		at := join("auth.profiles", id)
		p := c.Auth.Profiles[id]
		profile := llm.ProfileID(id)
		provider := llm.NormalizeProvider(p.Provider)
		if provider == "" {
			provider = profile.Provider()
		}
		switch {
		case profile.Name() == "" || profile.Provider() == "":
			d.fail(at, fmt.Sprintf("%s is not a profile id", quote(id)), "write provider:name, for example openai:work")
			continue
		case profile.Provider() != provider:
			d.fail(at, fmt.Sprintf("the id belongs to provider %s, the profile to %s", quote(profile.Provider()), quote(provider)), "")
			continue
		}
		c.checkProvider(d, provider, at)
		pool := c.pools[provider]
		pool.Declared = append(pool.Declared, policy.Declared{ID: profile, Mode: llm.CredentialKind(p.Mode)})
		c.pools[provider] = pool
	}
	c.resolveSignIns(d)
	for _, written := range slices.Sorted(maps.Keys(c.Auth.Order)) {
		c.resolveOrder(d, written)
	}
}

// resolveSignIns checks how one signs in at providers.
func (c *Config) resolveSignIns(d *decoder) {
	seen := map[string]bool{}
	for _, written := range slices.Sorted(maps.Keys(c.Auth.Providers)) {
		at := join("auth.providers", written)
		id := llm.NormalizeProvider(written)
		switch {
		case seen[id]:
			d.fail(at, fmt.Sprintf("this is provider %s, which stands here already", quote(id)), "")
			continue
		case id == "" || strings.ContainsAny(id, "/:@ \t\n"):
			d.fail(at, fmt.Sprintf("%s is not a provider id", quote(written)), "no spaces and none of / : @")
			continue
		}
		seen[id] = true
		c.checkProvider(d, id, at)
		d.component(at, c.Auth.Providers[written].Validate())
	}
}

func (c *Config) resolveOrder(d *decoder, written string) {
	at := join("auth.order", written)
	provider := llm.NormalizeProvider(written)
	c.checkProvider(d, provider, at)
	pool := c.pools[provider]
	if pool.Configured != nil {
		d.warn(at, fmt.Sprintf("provider %s has an order under another spelling too", quote(provider)), "the lists are joined")
	}
	order := append([]llm.ProfileID{}, pool.Configured...)
	for i, id := range c.Auth.Order[written] {
		profile := llm.ProfileID(id)
		entry := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case profile.Provider() != provider || profile.Name() == "":
			d.fail(entry, fmt.Sprintf("%s is not a profile of %s", quote(id), quote(provider)), "write "+provider+":name")
		case slices.Contains(order, profile):
			d.warn(entry, fmt.Sprintf("%s stands here twice", quote(id)), "the first one counts")
		default:
			order = append(order, profile)
		}
	}
	pool.Configured = order
	c.pools[provider] = pool
}

// Pool returns what the configuration knows about the credentials of a provider: Declared,
// Configured, and Virtual when models.providers holds a key for it. Stored and Override are the
// auth store's part. The result may be changed by the caller, its slices may not.
func (c *Config) Pool(provider string) policy.Pool {
	provider = llm.NormalizeProvider(provider)
	pool := c.pools[provider]
	pool.Provider = provider
	if p, ok := c.Models.Providers[provider]; ok && !p.APIKey.IsZero() {
		pool.Virtual = &policy.Profile{ID: llm.ProfileID(provider + ":env"), Kind: llm.KindAPIKey, HasSecret: true}
	}
	return pool
}

// AuthProviders returns the providers for whose credentials the configuration says anything, sorted:
// those whose Pool is not empty.
func (c *Config) AuthProviders() []string {
	ids := slices.Collect(maps.Keys(c.pools))
	for id, p := range c.Models.Providers {
		if _, listed := c.pools[id]; !listed && !p.APIKey.IsZero() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Rules returns the numbers of `auth.cooldowns` with the cap of
// OPENCLAW_SDK_RETRY_MAX_WAIT_SECONDS.
func (c *Config) Rules() policy.Rules {
	r := c.rules
	r.BillingByProvider = maps.Clone(r.BillingByProvider)
	return r
}
