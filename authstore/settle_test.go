package authstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"understudy/authstore/internal/authdb"
	"understudy/failover/policy"
	"understudy/llm"
)

func TestSettleSaysWhatChanged(t *testing.T) {
	s := mustOpen(t, newPath(t), Deps{})
	mustPut(t, s, key("openai:a"))
	all, one := policy.Key{Profile: "openai:a"}, policy.Key{Profile: "openai:a", Model: "m1"}
	steps := []struct {
		name string
		a    policy.Attempt
		want []policy.Key
	}{
		{"first success", succeeded("openai:a", "m1", moment), nil},
		{"limited", failed("openai:a", "m1", llm.ReasonRateLimit, moment), []policy.Key{one}},
		{"nothing to blame", failed("openai:a", "m1", llm.ReasonFormat, moment), nil},
		{"overloaded", failed("openai:a", "m1", llm.ReasonOverloaded, moment), []policy.Key{all}},
		{"another model limited", failed("openai:a", "m2", llm.ReasonRateLimit, moment), []policy.Key{{Profile: "openai:a", Model: "m2"}}},
		{"back", succeeded("openai:a", "m1", moment.Add(time.Second)), []policy.Key{all, one}},
		{"still back", succeeded("openai:a", "m1", moment.Add(2*time.Second)), nil},
	}
	for _, step := range steps {
		var got []policy.Key
		for _, c := range mustSettle(t, s, step.a) {
			got = append(got, c.Key)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s:\n%s", step.name, diff)
		}
	}
	h := mustSnapshot(t, s).Health
	if len(h) != 2 || !h[all].LastUsed.Equal(moment.Add(2*time.Second)) {
		t.Errorf("at the end: %v", h)
	}
	if good, err := s.LastGood(t.Context()); err != nil || good["openai"] != "openai:a" {
		t.Errorf("last good: %v, %v", good, err)
	}
}

// TestAgainstTheRules settles a long random history through two stores of one file and compares
// with the rules applied to plain rows.
func TestAgainstTheRules(t *testing.T) {
	path := newPath(t)
	stores := []*Store{mustOpen(t, path, Deps{}), mustOpen(t, path, Deps{})}
	rules, model := policy.DefaultRules(), policy.Health{}
	r := rand.New(rand.NewPCG(7, 7))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	now := moment
	for range 150 {
		now = now.Add(time.Duration(r.IntN(90)) * time.Second)
		a := policy.Attempt{Profile: llm.ProfileID(pick("x:a", "x:b")), Model: pick("m1", "m2", ""), At: now, Background: r.IntN(5) == 0}
		if r.IntN(4) > 0 {
			a.Failure = &llm.Failure{
				Reason:     llm.Reason(pick("auth", "auth_permanent", "billing", "rate_limit", "overloaded", "timeout", "format")),
				RetryAfter: time.Duration(r.IntN(3)) * time.Minute,
			}
		}
		all, one := policy.Key{Profile: a.Profile}, policy.Key{Profile: a.Profile, Model: a.Model}
		before := policy.Pair{All: model[all]}
		if a.Model != "" {
			before.Model = model[one]
		}
		after := rules.Settle(before, a)
		model[all] = after.All
		if a.Model != "" {
			model[one] = after.Model
		}
		mustSettle(t, stores[r.IntN(2)], a)
	}
	for _, s := range stores {
		synced(t, s)
		got := mustSnapshot(t, s).Health
		for k, want := range model {
			if !got[k].Equal(want) {
				t.Errorf("%v:\n%s", k, cmp.Diff(want, got[k]))
			}
		}
	}
}

// synced waits until everything that was settled is in the file.
func synced(t *testing.T, s *Store) {
	t.Helper()
	j := &job{done: make(chan struct{}), keep: true, do: noChange}
	if _, _, err := s.enqueue(j); err != nil {
		t.Fatal(err)
	}
	<-j.done
}

func TestABurstIsOneIncident(t *testing.T) {
	path := newPath(t)
	stores := []*Store{mustOpen(t, path, Deps{}), mustOpen(t, path, Deps{})}
	mustPut(t, stores[0], key("openai:a"))
	const each = 40
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range each {
				at := moment.Add(time.Duration(n) * 100 * time.Millisecond)
				_, err := stores[i%2].Settle(t.Context(), policy.DefaultRules(), failed("openai:a", "m1", llm.ReasonRateLimit, at))
				if err != nil && !errors.Is(err, ErrLate) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		synced(t, s)
	}
	for i, s := range stores {
		row := mustSnapshot(t, s).Health[policy.Key{Profile: "openai:a", Model: "m1"}]
		if row.ErrorCount != 1 || row.FailureCounts[llm.ReasonRateLimit] != 4*each {
			t.Errorf("store %d: step %d, %v", i, row.ErrorCount, row.FailureCounts)
		}
		if length := row.Cooldown.Until.Sub(row.Cooldown.Since); length != 30*time.Second {
			t.Errorf("store %d: the window moved: %v", i, length)
		}
	}
}

func TestALockedFileHoldsNoTurn(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, path, Deps{BusyTimeout: -1})
		mustPut(t, s, key("openai:a"))
		release := hold(t, path)
		start := time.Now()
		changed, err := s.Settle(t.Context(), policy.DefaultRules(), failed("openai:a", "m1", llm.ReasonAuth, moment))
		if !errors.Is(err, ErrLate) || len(changed) != 1 {
			t.Errorf("settle: %v, %v", changed, err)
		}
		if waited := time.Since(start); waited > turnBudget {
			t.Errorf("the turn waited %v", waited)
		}
		start = time.Now()
		if _, err = s.Settle(t.Context(), policy.DefaultRules(), failed("openai:a", "m2", llm.ReasonTimeout, moment)); !errors.Is(err, ErrLate) {
			t.Errorf("second settle: %v", err)
		}
		if ok, err := s.ClaimProbe(t.Context(), "openai", moment); ok || !errors.Is(err, ErrLate) {
			t.Errorf("claim: %v, %v", ok, err)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("later turns waited %v although the file is known to be locked", waited)
		}
		if h := mustSnapshot(t, s).Health; len(h) != 2 {
			t.Errorf("what happened does not count: %v", h)
		}
		if err := s.Late(); !errors.Is(err, ErrLate) {
			t.Errorf("told: %v", err)
		}
		other := mustOpen(t, path, Deps{BusyTimeout: -1})
		if h := mustSnapshot(t, other).Health; len(h) != 0 {
			t.Errorf("written under a foreign lock: %v", h)
		}
		released := make(chan struct{})
		time.AfterFunc(8*time.Second, func() {
			release()
			close(released)
		})
		<-released // closing the other handle takes the lock once more
		synced(t, s)
		if h := mustSnapshot(t, other).Health; len(h) != 2 {
			t.Errorf("not written later: %v", h)
		}
		if p := mustSnapshot(t, other).LastProbe; len(p) != 0 {
			t.Errorf("a claim that nobody waited for was taken: %v", p)
		}
		if _, err := s.Settle(t.Context(), policy.DefaultRules(), failed("openai:a", "m3", llm.ReasonTimeout, moment)); err != nil {
			t.Errorf("after the lock: %v", err)
		}
		if err := s.Late(); err != nil {
			t.Errorf("still told: %v", err)
		}
	})
}

func TestTheQueueIsBounded(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, path, Deps{BusyTimeout: -1})
		release := hold(t, path)
		var err error
		for i := 0; i <= maxQueue && err == nil; i++ {
			_, err = s.Settle(t.Context(), policy.DefaultRules(), succeeded("x:a", "m", moment.Add(time.Duration(i))))
		}
		if !errors.Is(err, ErrDropped) {
			t.Errorf("got %v, want ErrDropped", err)
		}
		release()
	})
}

func TestProbeThrottle(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		a, b := mustOpen(t, path, Deps{BusyTimeout: -1}), mustOpen(t, path, Deps{BusyTimeout: -1})
		claim := func(s *Store, provider string, after time.Duration) bool {
			t.Helper()
			ok, err := s.ClaimProbe(t.Context(), provider, moment.Add(after))
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		if !claim(a, "OpenAI", 0) || claim(b, "openai", 0) {
			t.Error("not exactly one of two took the slot")
		}
		if !claim(a, "anthropic", 0) {
			t.Error("another provider is bound too")
		}
		if claim(b, "openai", 29999*time.Millisecond) {
			t.Error("taken 1 ms early")
		}
		if !claim(b, "openai", 30*time.Second) {
			t.Error("not free after 30 s")
		}
		if err := b.ReleaseProbe(t.Context(), "openai", moment.Add(30*time.Second)); err != nil {
			t.Fatal(err)
		}
		if got := mustSnapshot(t, a).LastProbe["openai"]; !got.Equal(moment) {
			t.Errorf("giving it back left %v", got)
		}
		if !claim(a, "openai", 31*time.Second) {
			t.Error("not free after it was given back")
		}
		if err := b.ReleaseProbe(t.Context(), "openai", moment.Add(30*time.Second)); err != nil {
			t.Fatal(err)
		}
		if claim(a, "openai", 32*time.Second) {
			t.Error("an old claim gave away somebody else's")
		}
	})
}

func TestOneProbeForAll(t *testing.T) {
	path := newPath(t)
	stores := []*Store{mustOpen(t, path, Deps{}), mustOpen(t, path, Deps{})}
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			ok, err := stores[i%2].ClaimProbe(t.Context(), "openai", moment.Add(time.Duration(i)*time.Second))
			if err != nil && !errors.Is(err, ErrLate) { // a slow machine is no fault
				t.Error(err)
			}
			if ok {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() > 1 {
		t.Errorf("%d of 10 took the same slot", won.Load())
	}
}

func TestRowsSurviveTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := func(name string) time.Time {
			ms := rapid.Int64Range(0, 4e12).Draw(t, name)
			if ms == 0 {
				return time.Time{}
			}
			return time.UnixMilli(ms)
		}
		window := func(name string) policy.Window {
			return policy.Window{
				Since: at(name + " since"), Until: at(name + " until"), Reason: llm.Reason(rapid.String().Draw(t, name+" reason")),
				Detail: llm.Detail(rapid.String().Draw(t, name+" detail")), Stated: rapid.Bool().Draw(t, name+" stated"),
			}
		}
		count := rapid.IntRange(0, 1e6)
		want := policy.Row{
			LastUsed: at("used"), LastFailureAt: at("failed"), Cooldown: window("cooldown"), Disabled: window("disabled"),
			ErrorCount: count.Draw(t, "errors"), BillingCount: count.Draw(t, "billing"), AuthCount: count.Draw(t, "auth"),
			FailureCounts: rapid.MapOf(rapid.SampledFrom([]llm.Reason{"auth", "timeout", "billing"}), count).Draw(t, "counts"),
		}
		params, err := toRow(policy.Key{Profile: "x:a", Model: "m"}, want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := fromRow(authdb.Health(params))
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equal(want) {
			t.Fatal(cmp.Diff(want, got))
		}
	})
}

func noChange(context.Context, *change) error { return nil }
