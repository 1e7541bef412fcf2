package commands_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"understudy/commands"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/reply"
	"understudy/session"
)

// While a turn runs, people see what it waits for: in a group without the profiles.
func TestTheRunningTurnIsShown(t *testing.T) {
	var u commands.Underway
	runs := true
	w := newWorld(t, func(d *commands.Deps) {
		d.Underway = func(key string) (commands.Underway, bool) { return u, runs && key != "" }
	})
	c := direct()
	w.row(c)
	w.lanes[c.Key] = session.LaneState{Active: true, Since: noon.Add(-3 * time.Minute)}
	u = commands.Underway{
		Began: noon.Add(-3 * time.Minute), Selected: mustRef("alpha/a1"),
		Asked: commands.Record{Provider: "alpha", Model: "a2", Profile: "alpha:p1", StartedAt: noon.Add(-time.Minute)},
		Records: []commands.Record{{
			Provider: "alpha", Model: "a1", Profile: "alpha:p1", Reason: llm.ReasonTimeout, Detail: llm.DetailDeadline,
			StartedAt: noon.Add(-3 * time.Minute), Duration: 2 * time.Minute,
		}},
	}
	w.says(c, "/why", "⏳ This turn, since 11:57:00: waiting for alpha/a2 with `alpha:p1` since 11:59:00\n"+
		"1. 11:57:00 alpha/a1 with `alpha:p1` — timeout, 120.0 s")
	w.hasLine(c, "/status", "⏳ Working since 11:57: waiting for alpha/a2 since 11:59:00; before that alpha/a1 (timeout)")
	g := group()
	w.row(g)
	w.hasLine(g, "/why", "1. 11:57:00 alpha/a1 — timeout, 120.0 s")

	u.Asked, u.Pause = commands.Record{}, noon.Add(15*time.Second)
	record, err := json.Marshal(reply.Decision{At: noon.Add(-time.Hour), Outcome: "answered", Model: mustRef("alpha/a1")})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.AppendDecision(t.Context(), c.Key, json.RawMessage(`{}`), record); err != nil {
		t.Fatal(err)
	}
	w.says(c, "/why", "⏳ This turn, since 11:57:00: waiting until 12:00:15 before it asks again\n"+
		"1. 11:57:00 alpha/a1 with `alpha:p1` — timeout, 120.0 s\n\n🔎 Last turn, 11:00, 0.0 s: answered by alpha/a1")
	runs = false
	w.says(c, "/why", "🔎 Last turn, 11:00, 0.0 s: answered by alpha/a1")
	w.hasLine(c, "/status", "⏳ Working since 11:57")
}

// Of a lead that is not probed nobody says so: a revoked key waits for a person, an unpaid account for its
// half hour, and where nothing rests the next message asks first.
func TestAProbeIsAnnouncedOnlyWhereOneComes(t *testing.T) {
	off := func(reason llm.Reason, since, until time.Duration) policy.Row {
		return policy.Row{Disabled: policy.Window{Since: noon.Add(since), Until: noon.Add(until), Reason: reason}}
	}
	for _, x := range []struct {
		name          string
		row           policy.Row
		probed        time.Duration // ago; 0 = never
		status, probe string
	}{
		{"free", policy.Row{}, 0, "asked first again with the next message", "nothing keeps it from serving."},
		{
			"revoked", off(llm.ReasonAuthPermanent, -time.Minute, 9*time.Minute), 0,
			"asked again at 12:09 (in 9 min), or after `bot auth enable alpha`",
			"credential revoked. It is asked again at 12:09 (in 9 min), or after `bot auth enable alpha`.",
		},
		{
			"unpaid", off(llm.ReasonBilling, -time.Minute, 5*time.Hour), 0, "next primary probe in 29:00",
			"billing, and it was asked less than 30 min ago. It may be asked again at 12:29 (in 29 min), or after `bot auth enable alpha`.",
		},
		{
			"cooling",
			policy.Row{Cooldown: policy.Window{Until: noon.Add(time.Hour), Reason: llm.ReasonRateLimit}},
			10 * time.Second,
			"next primary probe in 4:05", "alpha was asked a moment ago. Another probe may be made at 12:00 (in 20 s).",
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(t, func(d *commands.Deps) {
				d.NextProbe = func() time.Time { return noon.Add(4*time.Minute + 5*time.Second) }
				d.Probe = neverAsked
			})
			c := direct()
			w.models.health.Health = policy.Health{}
			for _, id := range w.models.Profiles(t.Context(), c.Agent, mustRef("alpha/a1")) {
				w.models.health.Health[policy.Key{Profile: id}] = x.row
			}
			if x.probed != 0 {
				w.models.health.LastProbe = map[string]time.Time{"alpha": noon.Add(-x.probed)}
			}
			w.set(c, func(s *session.Session) {
				s.Notice = session.Pair{Selected: mustRef("alpha/a1"), Active: mustRef("beta/b1"), Reason: "sign-in problem"}
			})
			w.hasLine(c, "/status", "↪️ Answering: beta/b1 — sign-in problem, since 12:00; "+x.status)
			w.says(c, "/failover probe", "🩺 alpha/a1 was not asked: "+x.probe)
		})
	}
}

// neverAsked is a prober that leaves every model alone.
func neverAsked(context.Context, string, llm.ModelRef) (answered, asked bool, err error) {
	return false, false, nil
}

// hasLine runs a command and looks for a line of its reply.
func (w *world) hasLine(c commands.Call, text, line string) {
	w.t.Helper()
	if got := w.run(c, text).Text; !strings.Contains("\n"+got+"\n", "\n"+line+"\n") {
		w.t.Errorf("%s: %q is not in\n%s", text, line, got)
	}
}
