package heartbeat_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/failover/policy"
	"understudy/heartbeat"
	"understudy/llm"
	"understudy/session"
)

func ref(s string) llm.ModelRef {
	r, err := llm.ParseRef(s)
	if err != nil {
		panic(err)
	}
	return r
}

// store is a session store in memory.
type store struct {
	list         []session.Session
	cleared      []string
	transactions int
}

func (s *store) List(_ context.Context, f session.Filter) (out []session.Session, _ error) {
	for _, x := range s.list {
		if (f.AutoOnly && x.Override.Auto()) || (f.FallenBack && !x.Notice.Active.IsZero()) {
			out = append(out, x)
		}
	}
	return out, nil
}

func (s *store) ClearAutos(_ context.Context, probed []session.Session) (n int, _ error) {
	s.transactions++
	for _, p := range probed {
		for i, x := range s.list {
			if x.Key == p.Key && x.Override == p.Override {
				s.list[i].Override = session.Override{}
				s.cleared = append(s.cleared, x.Key)
				n++
			}
		}
	}
	return n, nil
}

func auto(key, model, origin string) session.Session {
	return session.Session{Key: key, AgentID: "main", Override: session.Override{Model: ref(model), Source: session.SourceAuto, Origin: ref(origin)}}
}

func fallen(key, selected, active string) session.Session {
	return session.Session{Key: key, AgentID: "main", Notice: session.Pair{Selected: ref(selected), Active: ref(active)}}
}

// job runs the five-minute job on what is stored; up says which models answer.
func job(t *testing.T, s *store, up ...string) (asked []string, p *heartbeat.Prober) {
	p = heartbeat.New(heartbeat.Deps{
		Sessions: s, Log: slog.New(slog.DiscardHandler),
		Probe: func(_ context.Context, agent string, r llm.ModelRef, onlyCooling bool) (bool, bool, error) {
			mark := ""
			if onlyCooling {
				mark = "?"
			}
			asked = append(asked, agent+" "+r.String()+mark)
			return slices.Contains(up, r.String()), true, nil
		},
	})
	p.Tick(t.Context())
	return asked, p
}

func TestOneProbePerOrigin(t *testing.T) {
	s := &store{list: []session.Session{
		auto("a", "beta/b1", "alpha/a1"), auto("b", "beta/b1", "alpha/a1"), fallen("c", "alpha/a1", "beta/b1"),
		fallen("d", "gamma/g1", "beta/b1"),
		{Key: "e", AgentID: "main"},
	}}
	asked, _ := job(t, s, "alpha/a1")
	if diff := cmp.Diff([]string{"main alpha/a1", "main gamma/g1?"}, asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, s.cleared); diff != "" || s.transactions != 1 {
		t.Errorf("%s in %d transactions", diff, s.transactions)
	}
}

func TestNothingFellBackNothingIsAsked(t *testing.T) {
	if asked, _ := job(t, &store{list: []session.Session{{Key: "a", AgentID: "main"}}}); len(asked) != 0 {
		t.Errorf("asked %v", asked)
	}
}

func TestAFailureEndsTheProvidersProbesForNow(t *testing.T) {
	s := &store{list: []session.Session{
		fallen("a", "alpha/a1", "beta/b1"), fallen("b", "alpha/a2", "beta/b1"), fallen("c", "gamma/g1", "beta/b1"),
	}}
	asked, _ := job(t, s)
	if got := strings.Join(asked, ", "); got != "main alpha/a1?, main gamma/g1?" {
		t.Errorf("asked %s", got)
	}
	if len(s.cleared) != 0 {
		t.Errorf("cleared %v although nobody answered", s.cleared)
	}
}

func TestRunsEveryFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		p := heartbeat.New(heartbeat.Deps{
			Sessions: &store{list: []session.Session{fallen("a", "alpha/a1", "beta/b1")}}, Log: slog.New(slog.DiscardHandler),
			Probe: func(context.Context, string, llm.ModelRef, bool) (bool, bool, error) {
				at = append(at, time.Since(began))
				return false, true, errors.New("down")
			},
		})
		for time.Since(began) < time.Hour {
			time.Sleep(time.Until(p.Due()))
			p.Do(t.Context())
		}
		if len(at) < 12 || len(at) > 13 {
			t.Errorf("%d runs in an hour", len(at))
		}
		last := time.Duration(0)
		for _, x := range at {
			if gap := x - last; gap < heartbeat.Every-15*time.Second || gap > heartbeat.Every+15*time.Second {
				t.Errorf("a gap of %s", gap)
			}
			last = x
		}
	})
}

func TestSelection(t *testing.T) {
	models := policy.Models{Primary: ref("alpha/a1")}
	stale := auto("a", "beta/b1", "old/o1")
	fresh := auto("a", "beta/b1", "alpha/a1")
	for _, x := range []struct {
		name  string
		s     session.Session
		model llm.ModelRef
		want  policy.Selection
		clear session.Override
	}{
		{"its own model", stale, ref("gamma/g1"), policy.Selection{Ref: ref("gamma/g1"), Source: policy.SourceHeartbeat}, session.Override{}},
		{"the session's", session.Session{}, llm.ModelRef{}, policy.Selection{Ref: ref("alpha/a1"), Source: policy.SourceDefault}, session.Override{}},
		{"an override that still stands in", fresh, llm.ModelRef{}, policy.Selection{Ref: ref("beta/b1"), Source: policy.SourceAuto}, session.Override{}},
		{"a stale override goes", stale, llm.ModelRef{}, policy.Selection{Ref: ref("alpha/a1"), Source: policy.SourceDefault}, stale.Override},
	} {
		t.Run(x.name, func(t *testing.T) {
			sel, clear := heartbeat.Selection(x.s, x.model, models)
			if diff := cmp.Diff(x.want, sel); diff != "" || clear != x.clear {
				t.Errorf("%s; clears %v, want %v", diff, clear, x.clear)
			}
		})
	}
}
