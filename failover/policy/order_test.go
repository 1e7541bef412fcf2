package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/failover/policy"
	"understudy/llm"
)

func ids(s ...string) []llm.ProfileID {
	out := make([]llm.ProfileID, len(s))
	for i, x := range s {
		out[i] = llm.ProfileID(x)
	}
	return out
}

func key(id string) policy.Profile {
	return policy.Profile{ID: llm.ProfileID(id), Kind: llm.KindAPIKey, HasSecret: true}
}

func oauth(id string, expires time.Duration, refresh bool) policy.Profile {
	return policy.Profile{ID: llm.ProfileID(id), Kind: llm.KindOAuth, HasSecret: true, HasRefresh: refresh, Expires: t0.Add(expires)}
}

func TestOrder(t *testing.T) {
	env := key("alpha:env")
	stored := []policy.Profile{key("alpha:k1"), key("alpha:k2"), oauth("alpha:o1", -time.Minute, true), oauth("alpha:o2", time.Hour, true)}
	for _, x := range []struct {
		name   string
		pool   policy.Pool
		health policy.Health
		want   []llm.ProfileID
		stale  []llm.ProfileID
	}{
		{name: "type, then usable tokens, then the longest unused", pool: policy.Pool{Stored: stored}, health: policy.Health{
			{Profile: "alpha:k1"}: {LastUsed: t0},
		}, want: ids("alpha:o2", "alpha:o1", "alpha:k2", "alpha:k1")},
		{name: "an explicit order is taken as written", pool: policy.Pool{Stored: stored, Configured: ids("alpha:k2", "alpha:o1")}, want: ids("alpha:k2", "alpha:o1")},
		{
			name: "the agent's own order wins", pool: policy.Pool{Stored: stored, Configured: ids("alpha:k2"), Override: ids("alpha:k1")},
			want: ids("alpha:k1"),
		},
		{name: "an empty order means none", pool: policy.Pool{Stored: stored, Configured: ids(), Virtual: &env}, want: ids()},
		{name: "cooling ones go to the end, the soonest first", pool: policy.Pool{Stored: stored, Configured: ids("alpha:k1", "alpha:k2", "alpha:o2")}, health: policy.Health{
			{Profile: "alpha:k1", Model: "a1"}: {Cooldown: policy.Window{Until: t0.Add(time.Hour)}},
			{Profile: "alpha:k2"}:              {Cooldown: policy.Window{Until: t0.Add(time.Minute)}},
		}, want: ids("alpha:o2", "alpha:k2", "alpha:k1")},
		{name: "another model's window does not count", pool: policy.Pool{Stored: stored, Configured: ids("alpha:k1", "alpha:k2")}, health: policy.Health{
			{Profile: "alpha:k1", Model: "a9"}: {Cooldown: policy.Window{Until: t0.Add(time.Hour)}},
		}, want: ids("alpha:k1", "alpha:k2")},
		{name: "ids that are gone are named", pool: policy.Pool{Stored: stored, Configured: ids("alpha:old", "alpha:k2")}, want: ids("alpha:k2"), stale: ids("alpha:old")},
		{
			name: "an order of nothing but gone ids falls back to what is stored", pool: policy.Pool{Stored: []policy.Profile{key("alpha:k1")}, Configured: ids("alpha:old")},
			want: ids("alpha:k1"), stale: ids("alpha:old"),
		},
		{name: "an expired sign-in without a refresh token is out", pool: policy.Pool{Stored: []policy.Profile{oauth("alpha:o1", -1, false), key("alpha:k1")}}, want: ids("alpha:k1")},
		{name: "so is an expired token", pool: policy.Pool{Stored: []policy.Profile{{ID: "alpha:t", Kind: llm.KindToken, HasSecret: true, Expires: t0}, key("alpha:k1")}}, want: ids("alpha:k1")},
		{name: "and a profile without a secret", pool: policy.Pool{Stored: []policy.Profile{{ID: "alpha:x", Kind: llm.KindAPIKey}, key("alpha:k1")}}, want: ids("alpha:k1")},
		{name: "mode oauth takes a token", pool: policy.Pool{Stored: []policy.Profile{{ID: "alpha:t", Kind: llm.KindToken, HasSecret: true}}, Declared: []policy.Declared{{ID: "alpha:t", Mode: llm.KindOAuth}}}, want: ids("alpha:t")},
		{name: "mode token takes no oauth", pool: policy.Pool{Stored: []policy.Profile{oauth("alpha:o", time.Hour, true)}, Declared: []policy.Declared{{ID: "alpha:o", Mode: llm.KindToken}}}, want: ids()},
		{name: "declared profiles have no order of their own", pool: policy.Pool{
			Stored: stored, Declared: []policy.Declared{{ID: "alpha:k1", Mode: llm.KindAPIKey}, {ID: "alpha:o2", Mode: llm.KindOAuth}},
		}, want: ids("alpha:o2", "alpha:k1")},
		{name: "the environment's key serves when nothing is stored", pool: policy.Pool{Virtual: &env}, want: ids("alpha:env")},
		{
			name: "and when an order names only what is gone", pool: policy.Pool{Virtual: &env, Configured: ids("alpha:old")},
			want: ids("alpha:env"), stale: ids("alpha:old"),
		},
		{name: "a token about to expire is not usable", pool: policy.Pool{Stored: []policy.Profile{
			oauth("alpha:o1", 5*time.Minute, true), oauth("alpha:o2", 5*time.Minute+time.Second, true),
		}}, want: ids("alpha:o2", "alpha:o1")},
		{name: "with its further keys", pool: policy.Pool{Virtual: &env, More: []policy.Profile{{ID: "alpha:env-2", Kind: llm.KindAPIKey, HasSecret: true}}}, want: ids("alpha:env", "alpha:env-2")},
		{name: "which an order may name", pool: policy.Pool{Virtual: &env, More: []policy.Profile{{ID: "alpha:env-2", Kind: llm.KindAPIKey, HasSecret: true}}, Configured: ids("alpha:env-2")}, want: ids("alpha:env-2")},
		{name: "but not beside stored ones", pool: policy.Pool{Stored: stored[:1], Virtual: &env}, want: ids("alpha:k1")},
	} {
		t.Run(x.name, func(t *testing.T) {
			got := policy.Order(x.pool, x.health, "a1", t0)
			if !slices.Equal(got.Profiles, x.want) {
				t.Errorf("got %v, want %v", got.Profiles, x.want)
			}
			if !slices.Equal(got.Stale, x.stale) {
				t.Errorf("stale %v, want %v", got.Stale, x.stale)
			}
		})
	}
}

func TestPin(t *testing.T) {
	order := ids("alpha:k1", "alpha:k2", "alpha:k3")
	cooling := policy.Health{{Profile: "alpha:k2", Model: "a1"}: {Cooldown: policy.Window{Until: t0.Add(time.Minute)}}}
	for _, x := range []struct {
		name   string
		pin    policy.Pin
		health policy.Health
		want   []llm.ProfileID
		locked bool
	}{
		{"none", policy.Pin{}, nil, order, false},
		{"a preference goes first", policy.Pin{Profile: "alpha:k2"}, nil, ids("alpha:k2", "alpha:k1", "alpha:k3"), false},
		{"a cooling preference yields", policy.Pin{Profile: "alpha:k2"}, cooling, order, false},
		{"a user's lock stands alone", policy.Pin{Profile: "alpha:k2", User: true}, nil, ids("alpha:k2"), true},
		{"also when it cools", policy.Pin{Profile: "alpha:k2", User: true}, cooling, ids("alpha:k2"), true},
		{"a lock on what cannot serve leaves nobody", policy.Pin{Profile: "alpha:gone", User: true}, nil, nil, true},
		{"a preference that is gone is ignored", policy.Pin{Profile: "alpha:gone"}, nil, order, false},
		{"after a compaction the next one", policy.Pin{Profile: "alpha:k1", Advance: true}, nil, ids("alpha:k2", "alpha:k1", "alpha:k3"), false},
		{"the next available one", policy.Pin{Profile: "alpha:k1", Advance: true}, cooling, ids("alpha:k3", "alpha:k1", "alpha:k2"), false},
		{"wrapping", policy.Pin{Profile: "alpha:k3", Advance: true}, nil, ids("alpha:k1", "alpha:k2", "alpha:k3"), false},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, locked := x.pin.Apply(order, x.health, "a1", t0)
			if diff := cmp.Diff(x.want, got); diff != "" || locked != x.locked {
				t.Errorf("locked %v, want %v; %s", locked, x.locked, diff)
			}
		})
	}
}

func TestChain(t *testing.T) {
	refs := func(s ...string) (out []llm.ModelRef) {
		out = []llm.ModelRef{}
		for _, x := range s {
			out = append(out, ref(x))
		}
		return out
	}
	defaults := policy.Models{Primary: ref("alpha/a1"), Fallbacks: refs("beta/b1", "gamma/g1")}
	own := policy.Models{Primary: ref("gamma/g1"), Fallbacks: refs("beta/b1"), Own: true}
	bare := policy.Models{Primary: ref("gamma/g1"), Own: true}
	for _, x := range []struct {
		name   string
		sel    policy.Selection
		cfg    policy.Models
		want   []llm.ModelRef
		strict bool
	}{
		{"default", policy.Selection{Ref: ref("alpha/a1"), Source: policy.SourceDefault}, defaults, refs("alpha/a1", "beta/b1", "gamma/g1"), false},
		{"agent with its own list", policy.Selection{Ref: ref("gamma/g1"), Source: policy.SourceAgent}, own, refs("gamma/g1", "beta/b1"), false},
		{"agent without one", policy.Selection{Ref: ref("gamma/g1"), Source: policy.SourceAgent}, bare, refs("gamma/g1"), true},
		{"user", policy.Selection{Ref: ref("beta/b1"), Source: policy.SourceUser}, defaults, refs("beta/b1"), true},
		{"one-off", policy.Selection{Ref: ref("beta/b1"), Source: policy.SourceOneOff}, defaults, refs("beta/b1"), true},
		{"legacy auto", policy.Selection{Ref: ref("beta/b1"), Source: policy.SourceAuto}, defaults, refs("beta/b1", "gamma/g1", "alpha/a1"), false},
		{"cron", policy.Selection{Ref: ref("delta/d1"), Source: policy.SourceCron}, defaults, refs("delta/d1", "beta/b1", "gamma/g1", "alpha/a1"), false},
		{"cron with its own list", policy.Selection{Ref: ref("delta/d1"), Source: policy.SourceCron, Fallbacks: refs("beta/b1", "delta/d1")}, defaults, refs("delta/d1", "beta/b1"), false},
		{"strict cron", policy.Selection{Ref: ref("delta/d1"), Source: policy.SourceCron, Fallbacks: refs()}, defaults, refs("delta/d1"), true},
		{"heartbeat", policy.Selection{Ref: ref("gamma/g1"), Source: policy.SourceHeartbeat}, defaults, refs("gamma/g1", "beta/b1", "alpha/a1"), false},
		{"cron of an agent that is strict", policy.Selection{Ref: ref("delta/d1"), Source: policy.SourceCron}, bare, refs("delta/d1", "gamma/g1"), false},
	} {
		t.Run(x.name, func(t *testing.T) {
			if got := policy.Chain(x.sel, x.cfg); !slices.Equal(got, x.want) {
				t.Errorf("got %v, want %v", got, x.want)
			}
			if got := policy.Strict(x.sel, x.cfg); got != x.strict {
				t.Errorf("strict = %v, want %v", got, x.strict)
			}
		})
	}
}

func TestSelect(t *testing.T) {
	cfg := policy.Models{Primary: ref("alpha/a1")}
	for _, x := range []struct {
		name string
		o    policy.Override
		want policy.Selection
	}{
		{"nothing stored", policy.Override{}, policy.Selection{Ref: ref("alpha/a1"), Source: policy.SourceDefault}},
		{"the user's", policy.Override{Ref: ref("beta/b1"), Source: "user"}, policy.Selection{Ref: ref("beta/b1"), Source: policy.SourceUser}},
		{"without a source it is the user's", policy.Override{Ref: ref("beta/b1")}, policy.Selection{Ref: ref("beta/b1"), Source: policy.SourceUser}},
		{"an automatic one", policy.Override{Ref: ref("beta/b1"), Source: "auto", Origin: ref("alpha/a1")}, policy.Selection{Ref: ref("beta/b1"), Source: policy.SourceAuto}},
		{"an automatic one without origin is ignored", policy.Override{Ref: ref("beta/b1"), Source: "auto"}, policy.Selection{Ref: ref("alpha/a1"), Source: policy.SourceDefault}},
	} {
		t.Run(x.name, func(t *testing.T) {
			if diff := cmp.Diff(x.want, policy.Select(x.o, cfg)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSoonestExpiry(t *testing.T) {
	chain := []policy.Candidate{
		{Ref: ref("alpha/a1"), Profiles: ids("alpha:p1")}, {Ref: ref("beta/b1"), Profiles: ids("beta:p1")},
	}
	h := policy.Health{
		{Profile: "alpha:p1", Model: "a9"}: {Cooldown: policy.Window{Until: t0.Add(10 * time.Second)}},
		{Profile: "alpha:p1", Model: "a1"}: {Cooldown: policy.Window{Until: t0.Add(200 * time.Second)}},
		{Profile: "alpha:p1"}:              {Cooldown: policy.Window{Until: t0.Add(100 * time.Second)}},
		{Profile: "beta:p1"}:               {Disabled: policy.Window{Until: t0.Add(5 * time.Hour)}},
	}
	if got := policy.SoonestExpiry(chain, h, t0).Sub(t0); got != 200*time.Second {
		t.Errorf("soonest in %s, want 200 s: unrelated windows do not count, of one profile the last one does", got)
	}
}
