package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/chat"
	"understudy/llm"
)

func TestDailyTotalsAddUp(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	ses := mustEnsure(t, s, Seed{Key: "k", AgentID: "main", Address: room})
	at := time.Date(2026, 3, 2, 23, 30, 0, 0, time.FixedZone("", 3600))
	spent := Spend{At: at, Agent: "main", Model: ref("alpha/a1"), Purpose: PurposeMessage, Turns: 1, Usage: llm.Usage{Input: 10, Output: 5, CacheRead: 90}}
	priced := spent
	priced.CostMicros, priced.Priced = 1500, true
	for i, x := range []Spend{spent, priced, priced} {
		turn := Turn{ID: string(rune('a' + i)), SessionID: ses.ID, Model: x.Model, Spend: []Spend{x}, Usage: x.Usage}
		if err := s.FinishTurn(t.Context(), "k", turn); err != nil {
			t.Fatal(err)
		}
	}
	probe := Spend{At: at.Add(time.Hour), Agent: "other", Model: ref("alpha/a1"), Purpose: PurposeProbe, Turns: 1, Usage: llm.Usage{Input: 1}}
	if err := s.AddSpend(t.Context(), probe, Spend{}); err != nil { // the second names no model
		t.Fatal(err)
	}
	all, err := s.Totals(t.Context(), "", "2026-03-02")
	if err != nil {
		t.Fatal(err)
	}
	want := []Total{
		{
			Day: "2026-03-02", Agent: "main", Model: ref("alpha/a1"), Purpose: PurposeMessage, Turns: 3,
			Usage: llm.Usage{Input: 30, Output: 15, CacheRead: 270}, CostMicros: 3000, Unpriced: 1,
		},
		{Day: "2026-03-03", Agent: "other", Model: ref("alpha/a1"), Purpose: PurposeProbe, Turns: 1, Usage: llm.Usage{Input: 1}, Unpriced: 1},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	if got, err := s.Totals(t.Context(), "main", "2026-03-03"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if got := mustGet(t, s, "k"); got.LastModel != ref("alpha/a1") || got.TokensIn != 300 || got.TokensOut != 15 {
		t.Errorf("%+v", got)
	}
	if err := s.ResetUsage(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if got := mustGet(t, s, "k"); got.TokensIn != 0 || got.TokensOut != 0 || got.UsageSince.IsZero() {
		t.Errorf("%+v", got)
	}
}

func TestBackgroundWorkMovesNoTimeOfPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, newPath(t), -1)
		mustEnsure(t, s, Seed{Key: "k", AgentID: "main", Address: room})
		spoke := time.Now()
		if err := s.Touch(t.Context(), "k", spoke); err != nil {
			t.Fatal(err)
		}
		before := mustGet(t, s, "k")
		<-time.After(time.Hour)
		entries := []Entry{{Kind: KindMessage, Message: llm.Text(llm.RoleAssistant, "the report")}}
		for range 2 { // the second time changes nothing
			if err := s.AppendOnce(t.Context(), "k", "run1", entries); err != nil {
				t.Fatal(err)
			}
		}
		turn := Turn{ID: "hb", SessionID: before.ID, NoTotals: true, Usage: llm.Usage{Input: 100, ContextSize: 100}, Model: ref("cheap/c1")}
		if err := s.FinishTurn(t.Context(), "k", turn); err != nil {
			t.Fatal(err)
		}
		after := mustGet(t, s, "k")
		if !after.LastInteractionAt.Equal(before.LastInteractionAt) || !after.StartedAt.Equal(before.StartedAt) {
			t.Errorf("moved: %+v", after)
		}
		if after.TokensIn != 0 || after.TokensContext != 0 {
			t.Errorf("counted: %+v", after)
		}
		if got, _ := s.Load(t.Context(), after.ID); len(got) != 1 {
			t.Errorf("written %d times", len(got))
		}
		if err := s.AppendOnce(t.Context(), "k", "", entries); err == nil {
			t.Error("a run without an id cannot be written once")
		}
		<-time.After(time.Hour)
	})
}

// TestCleanupKeepsWhatSomebodyChose has sessions in which nobody ever wrote.
func TestCleanupKeepsWhatSomebodyChose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, newPath(t), -1)
		direct := chat.Address{Channel: "telegram", Conversation: "7", Kind: chat.Direct}
		thread := chat.Address{Channel: "slack", Conversation: "C1", Thread: "1", Kind: chat.Room}
		for key, at := range map[string]chat.Address{
			"group": {Channel: "telegram", Conversation: "-1", Kind: chat.Group}, "room": room, "thread": thread, "topic": direct, "direct": direct,
			"think": direct, "queue": direct, "speech": direct, "usage": direct, "verbose": direct, "profile": direct,
		} {
			seed := Seed{Key: key, AgentID: "main", Address: at}
			if key == "thread" || key == "topic" {
				seed.Parent = "room"
			}
			mustEnsure(t, s, seed)
		}
		for key, choose := range map[string]func(*Session){
			"think": func(x *Session) { x.Think = "high" }, "queue": func(x *Session) { x.Queue = []byte(`{"mode":"collect"}`) },
			"speech": func(x *Session) { x.TTSAuto = "off" }, "usage": func(x *Session) { x.UsageMode = "full" },
			"verbose": func(x *Session) { x.Verbose = "on" }, "profile": func(x *Session) { x.SelectDefault("alpha:p1", false) },
		} {
			mustUpdate(t, s, key, func(x *Session) { choose(x) })
		}
		<-time.After(32 * 24 * time.Hour)
		gone, err := s.Cleanup(t.Context(), Maintenance{MaxRows: 1}, false)
		if err != nil || len(gone) != 1 || gone[0].Key != "direct" {
			t.Errorf("%v, %v", gone, err)
		}
	})
}

func TestCleanupTakesOnlyWhatNobodyTalksIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, newPath(t), -1)
		direct := chat.Address{Channel: "web", Conversation: "c", Kind: chat.Direct}
		keys := []string{
			"agent:main:telegram:group:-100",               // people talk in it
			"agent:main:cron:job1", "agent:main:cron:job2", // the second has a model of its own
			"agent:main:heartbeat", "agent:main:cli:x", "agent:main:web:direct:c",
		}
		for _, k := range keys {
			mustEnsure(t, s, Seed{Key: k, AgentID: "main", Address: direct})
		}
		if err := s.Touch(t.Context(), keys[0], time.Now()); err != nil {
			t.Fatal(err)
		}
		mustUpdate(t, s, keys[2], func(x *Session) { x.Select(ref("alpha/a1"), "", false) })
		run := mustGet(t, s, keys[1])
		mustAppend(t, s, run.ID, say(llm.RoleUser, "first run"))
		if _, err := s.Reset(t.Context(), keys[1]); err != nil { // the next run begins
			t.Fatal(err)
		}
		clean := func(dry bool, m Maintenance) (list []string) {
			gone, err := s.Cleanup(t.Context(), m, dry)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range gone {
				list = append(list, r.Key+": "+r.Why)
			}
			return list
		}
		if got := clean(false, Maintenance{}); got != nil {
			t.Errorf("removed %v at once", got)
		}
		<-time.After(25 * time.Hour)
		if diff := cmp.Diff([]string{keys[1] + ": finished run"}, clean(true, Maintenance{})); diff != "" {
			t.Error(diff)
		}
		if got, _ := s.Load(t.Context(), run.ID); len(got) != 1 {
			t.Error("a dry run removed something")
		}
		clean(false, Maintenance{})
		if got, _ := s.Load(t.Context(), run.ID); len(got) != 0 {
			t.Error("the finished run is still there")
		}
		if got := clean(true, Maintenance{MaxRows: 3}); len(got) != 1 {
			t.Errorf("too many rows: %v", got)
		}
		<-time.After(30 * 24 * time.Hour)
		want := []string{keys[4] + ": age", keys[3] + ": age", keys[5] + ": age", keys[1] + ": age"}
		if diff := cmp.Diff(want, clean(false, Maintenance{}), cmp.Transformer("set", asSet)); diff != "" {
			t.Error(diff)
		}
		left, err := s.List(t.Context(), Filter{})
		if err != nil || len(left) != 2 {
			t.Errorf("%d left, %v", len(left), err)
		}
	})
}

func asSet(list []string) map[string]bool {
	m := map[string]bool{}
	for _, x := range list {
		m[x] = true
	}
	return m
}

func TestDeleteLeavesNothing(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	first := mustEnsure(t, s, Seed{Key: "k", AgentID: "main", Address: room})
	mustAppend(t, s, first.ID, say(llm.RoleUser, "secret one"))
	second, err := s.Reset(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, second.ID, say(llm.RoleUser, "secret two"))
	if err := s.AppendDecision(t.Context(), "k", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	ids, err := s.Transcripts(t.Context(), "k")
	if err != nil || len(ids) != 2 || ids[0] != first.ID || ids[1] != second.ID {
		t.Fatalf("%v, %v", ids, err)
	}
	if err := s.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if got, _ := s.Load(t.Context(), id); len(got) != 0 {
			t.Errorf("transcript %s is still there", id)
		}
	}
	fresh := mustEnsure(t, s, Seed{Key: "k", AgentID: "main", Address: room})
	if got, _ := s.Decisions(t.Context(), "k", 5); fresh.ID == second.ID || len(got) != 0 {
		t.Errorf("something is left: %v", got)
	}
	if err := s.Delete(t.Context(), "nobody"); err == nil {
		t.Error("deleted a session that is not there")
	}
}
