package commands_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"understudy/commands"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/reply"
	"understudy/session"
)

// limited is the health of an agent with one limited model, one stated end and one unpaid account.
func limited() policy.Health {
	cooling := func(d time.Duration, reason llm.Reason, stated bool) policy.Row {
		return policy.Row{ErrorCount: 1, Cooldown: policy.Window{Since: noon, Until: noon.Add(d), Reason: reason, Stated: stated}}
	}
	return policy.Health{
		{Profile: "alpha:p1", Model: "a1"}:             cooling(30*time.Second, llm.ReasonRateLimit, false),
		{Profile: "alpha:me@example.com", Model: "a1"}: cooling(72*time.Minute, llm.ReasonRateLimit, true),
		{Profile: "gamma:p2"}: {BillingCount: 1, Disabled: policy.Window{
			Since: noon, Until: noon.Add(26 * time.Hour), Reason: llm.ReasonBilling,
		}},
	}
}

func TestStatus(t *testing.T) {
	for _, x := range []struct {
		name string
		call commands.Call
		set  func(*world, commands.Call)
	}{
		{"healthy", direct(), func(*world, commands.Call) {}},
		{"busy", direct(), func(w *world, c commands.Call) {
			w.set(c, func(s *session.Session) {
				s.Think, s.Compactions, s.TokensContext, s.TokensIn, s.TokensOut = "high", 2, 250, 4200, 310
				s.LastTurn = session.LastTurn{In: 1200, Out: 110, CostMicros: 12_345, Priced: true}
				s.Pin = session.Pin{Profile: "alpha:me@example.com", Source: session.SourceAuto}
			})
			w.lanes[c.Key] = session.LaneState{Active: true, Since: noon.Add(-time.Minute), Queued: 2}
		}},
		{"fallen_back", direct(), func(w *world, c commands.Call) {
			w.set(c, func(s *session.Session) {
				s.Notice = session.Pair{Selected: mustRef("alpha/a1"), Active: mustRef("beta/b1"), Reason: "rate limit"}
			})
			w.models.health.Health = limited()
		}},
		{"pinned", direct(), func(w *world, c commands.Call) { w.run(c, "/model gee@p2") }},
		{"limited", direct(), func(w *world, c commands.Call) {
			w.models.health.Health = limited()
			w.run(c, "/model default@p1")
		}},
		{"limited_group", group(), func(w *world, _ commands.Call) { w.models.health.Health = limited() }},
		{"legacy_automatic", direct(), func(w *world, c commands.Call) { w.set(c, fallenBack) }},
		{"thread", topic(), func(w *world, _ commands.Call) { w.run(group(), "/model gee") }},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(t, func(d *commands.Deps) {
				d.Channels = func() []commands.Channel {
					return []commands.Channel{{Name: "telegram/bot", State: "reconnecting", Since: noon.Add(-12 * time.Second)}, {Name: "web", State: "connected"}}
				}
				d.NextProbe = func() time.Time { return noon.Add(4*time.Minute + 5*time.Second) }
				d.Problems = func(context.Context) []string {
					return []string{"The newest configuration is not in use: bot.yaml:3:1"}
				}
			})
			x.set(w, x.call)
			before := w.row(x.call)
			golden(t, "status_"+x.name, w.run(x.call, "/status").Text)
			if after := w.row(x.call); before.Override != after.Override || before.Pin != after.Pin || before.Notice != after.Notice {
				t.Error("looking changed something")
			}
		})
	}
}

// TestStatusTellsWhatATurnLeft shows the lines that come from turns: what the last one used, since when
// another model answers, and that the conversation began anew, in the zone of the user.
func TestStatusTellsWhatATurnLeft(t *testing.T) {
	w := newWorld(t, func(d *commands.Deps) {
		d.Zone = func(string) *time.Location { return time.FixedZone("east", 2*60*60) }
	})
	c := direct()
	turn := func(usage llm.Usage, reason string, spend ...session.Spend) {
		t.Helper()
		err := w.store.FinishTurn(t.Context(), c.Key, session.Turn{
			SessionID: w.row(c).ID, Usage: usage, Model: mustRef("beta/b1"), Spend: spend, Change: func(s *session.Session) error {
				s.Notice = session.Pair{Selected: mustRef("alpha/a1"), Active: mustRef("beta/b1"), Reason: reason}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	has := func(lines ...string) {
		t.Helper()
		text := w.run(c, "/status").Text
		for _, l := range lines {
			if !strings.Contains(text+"\n", l+"\n") {
				t.Errorf("%q is not in\n%s", l, text)
			}
		}
	}
	w.row(c)
	has("🧵 Session: `" + c.Key + "` · started 14:00")
	turn(llm.Usage{Input: 100, CacheRead: 20, Output: 7}, "rate limit", session.Spend{Model: mustRef("beta/b1"), CostMicros: 2_500, Priced: true})
	w.clock.Advance(noon.Add(3 * time.Minute))
	turn(llm.Usage{Input: 200, Output: 9}, "billing", session.Spend{Model: mustRef("beta/b1")})
	has("↪️ Answering: beta/b1 — billing, since 14:00; asked first again with the next message", "🧮 Last turn: 200 in / 9 out · session: 320/16")
	turn(llm.Usage{}, "billing") // a model that does not say what it used
	has("🧮 Session: 320/16")
	w.run(c, "/new")
	turn(llm.Usage{Input: 1, Output: 1}, "billing", session.Spend{Model: mustRef("beta/b1"), CostMicros: 7, Priced: true})
	has("↪️ Answering: beta/b1 — billing, since 14:03; asked first again with the next message", "🧮 Last turn: 1 in / 1 out · <$0.0001 · session: 1/1",
		"🧵 Session: `"+c.Key+"` · started 14:00 · last reset 14:03")
}

// TestStatusIgnoresWhatIsStale: an automatic override that does not say what it stands in for, and a
// notice pair of an older selection, say nothing about the next turn.
func TestStatusIgnoresWhatIsStale(t *testing.T) {
	w, c := newWorld(t), direct()
	w.set(c, func(s *session.Session) {
		s.Override = session.Override{Model: mustRef("beta/b1"), Source: session.SourceAuto}
		s.Notice = session.Pair{Selected: mustRef("gamma/g1"), Active: mustRef("beta/b1"), Reason: "billing"}
	})
	text := w.run(c, "/status").Text
	if !strings.Contains(text, "🧠 Model: alpha/a1 (default)\n") || strings.Contains(text, "↪️") {
		t.Error(text)
	}
}

func TestStatusOfAStrictAgent(t *testing.T) {
	w, c := newWorld(t), direct()
	c.Agent, c.Key = "ops", "agent:ops:telegram:direct:7"
	text := w.run(c, "/status").Text
	if !strings.Contains(text, "🧠 Model: gamma/g1 (agent)\n") || strings.Contains(text, "Fallbacks") || strings.Contains(text, "📌") {
		t.Error(text)
	}
}

func TestFailover(t *testing.T) {
	w, c := newWorld(t), direct()
	w.models.health.Health = limited()
	w.models.health.LastProbe = map[string]time.Time{"alpha": noon.Add(-10 * time.Second), "beta": noon.Add(-time.Hour)}
	golden(t, "failover", w.run(c, "/failover").Text)
	w.says(c, "/failover status", w.run(c, "/failover").Text)
	w.says(c, "/failover probe", "Nothing can be probed here.")
	w.run(c, "/model gee")
	if text := w.run(c, "/failover").Text; !strings.HasPrefix(text, "🎭 Chain of this conversation (strict)\n1. gamma/g1\n") || strings.Contains(text, "2.") {
		t.Error(text)
	}
}

func TestWhy(t *testing.T) {
	at := func(d time.Duration) time.Time { return noon.Add(-time.Minute + d) }
	trail := reply.Decision{
		Turn: "t1", At: at(0), Duration: 9300 * time.Millisecond, Outcome: "answered", Selected: mustRef("alpha/a1"), Model: mustRef("beta/b1"),
		Records: []failover.Record{
			{
				Provider: "alpha", Model: "a1", Profile: "alpha:p1", Why: policy.WhyFree, Reason: llm.ReasonRateLimit, Status: 429,
				Error: "slow down,\n\n`you` " + strings.Repeat("x", 300), StartedAt: at(0), Duration: 700 * time.Millisecond,
			},
			{
				Provider: "alpha", Model: "a1", Profile: "alpha:me@example.com", Why: policy.WhyRotation, Reason: llm.ReasonTimeout,
				Detail: llm.DetailServerError, Status: 503, StartedAt: at(time.Second), Duration: 400 * time.Millisecond,
			},
			{Provider: "gamma", Model: "g1", Skipped: true, Why: policy.WhyCooling, Reason: llm.ReasonOverloaded, StartedAt: at(2 * time.Second), Until: noon.Add(4 * time.Minute)},
			{Provider: "delta", Model: "d1", Skipped: true, Why: policy.WhyNoProfile, Reason: llm.ReasonAuth, StartedAt: at(2 * time.Second)},
			{Provider: "beta", Model: "b1", Profile: "beta:main", Why: policy.WhyLastResort, StartedAt: at(3 * time.Second), Duration: 6 * time.Second},
		},
	}
	record, err := json.Marshal(trail)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]commands.Call{"why": direct(), "why_group": group()} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.says(c, "/why", "Nothing has been answered here yet.")
			w.row(c)
			w.says(c, "/why", "Nothing has been answered here yet.")
			if err := w.store.AppendDecision(t.Context(), c.Key, json.RawMessage(`{}`), record); err != nil {
				t.Fatal(err)
			}
			golden(t, name, w.run(c, "/why").Text)
		})
	}
}

func TestWhyOfALongFailure(t *testing.T) {
	w, c := newWorld(t), direct()
	w.row(c)
	d := reply.Decision{At: noon, Outcome: "failed", Reason: llm.ReasonOverloaded, Selected: mustRef("alpha/a1")}
	for range 33 {
		d.Records = append(d.Records, failover.Record{Provider: "alpha", Model: "a1", Reason: llm.ReasonOverloaded, Why: policy.WhyPassRetry})
	}
	record, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.AppendDecision(t.Context(), c.Key, record); err != nil {
		t.Fatal(err)
	}
	text := w.run(c, "/why").Text
	if !strings.HasPrefix(text, "🔎 Last turn, 12:00, 0.0 s: failed (selected alpha/a1) — overloaded\n1. alpha/a1 — overloaded, 0.0 s; in another round\n") ||
		!strings.HasSuffix(text, "\n… and 3 more") {
		t.Error(text)
	}
}
