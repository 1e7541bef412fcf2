package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"understudy/chat"
	"understudy/internal/sqlite"
	"understudy/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ref(s string) llm.ModelRef {
	r, err := llm.ParseRef(s)
	if err != nil {
		panic(err)
	}
	return r
}

func openFile(t testing.TB, path string, busy time.Duration) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{BusyTimeout: busy})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "bot.sqlite") }

// newStore returns a store with ids s1, s2, …
func newStore(t testing.TB, path string, busy time.Duration) *Store {
	t.Helper()
	n := 0
	s, err := New(t.Context(), openFile(t, path, busy), Deps{NewID: func() string { n++; return fmt.Sprintf("s%d", n) }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var room = chat.Address{Channel: "telegram", Account: "bot", Conversation: "-100", Kind: chat.Group}

func mustEnsure(t testing.TB, s *Store, seed Seed) Session {
	t.Helper()
	ses, _, err := s.Ensure(t.Context(), seed)
	if err != nil {
		t.Fatal(err)
	}
	return ses
}

func mustUpdate(t testing.TB, s *Store, key string, f func(*Session)) Session {
	t.Helper()
	ses, err := s.Update(t.Context(), key, func(ses *Session) error { f(ses); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return ses
}

func mustGet(t testing.TB, s *Store, key string) Session {
	t.Helper()
	ses, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return ses
}

func TestEveryFieldSurvives(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	seed := Seed{Key: "k", AgentID: "main", Parent: "p", Address: room}
	ses, created, err := s.Ensure(t.Context(), seed)
	if err != nil || !created || ses.ID != "s1" {
		t.Fatalf("%+v, %v, %v", ses, created, err)
	}
	want := mustUpdate(t, s, "k", func(x *Session) {
		x.Override = Override{Model: ref("a/m"), Source: SourceAuto, Origin: llm.ModelRef{Model: "bare"}}
		x.Pin = Pin{Profile: "a:p", Source: SourceUser, Compactions: 2}
		x.Notice = Pair{Selected: ref("a/m"), Active: ref("b/n"), Reason: "limited"}
		x.SwitchPending = true
		x.Think, x.Verbose, x.UsageMode, x.TTSAuto, x.Status = "high", "on", "full", "inbound", "busy"
		x.Queue = json.RawMessage(`{"mode":"collect"}`)
		x.Compactions, x.TokensIn, x.TokensOut, x.TokensContext = 3, 4, 5, 6
		x.LastTurn = LastTurn{In: 7, Out: 8, Priced: true} // for nothing, which is not unknown
		x.ID, x.Key, x.AgentID = "other", "other", "other" // not an update's to change
	})
	if want.NoticeSince.IsZero() {
		t.Error("nobody knows since when the two differ")
	}
	if want.ID != "s1" || want.Key != "k" || want.AgentID != "main" {
		t.Errorf("an update changed the identity: %+v", want)
	}
	if diff := cmp.Diff(want, mustGet(t, s, "k")); diff != "" {
		t.Error(diff)
	}
	moved := room
	moved.Thread = "7"
	seed.Address = moved
	again, created, err := s.Ensure(t.Context(), seed)
	if err != nil || created || again.Address != moved || again.Override != want.Override {
		t.Errorf("ensured again: %+v, %v, %v", again, created, err)
	}
	if _, err := s.Get(t.Context(), "nobody"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Update(t.Context(), "nobody", func(*Session) error { return nil }); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestAUsersChoiceSurvivesARunThatEnds(t *testing.T) {
	path := newPath(t)
	a, b := newStore(t, path, 0), newStore(t, path, 0)
	ses := mustEnsure(t, a, Seed{Key: "k", AgentID: "main", Address: room})
	const each = 25
	var wg sync.WaitGroup
	for _, s := range []*Store{a, b} {
		wg.Go(func() {
			for i := range each {
				u := llm.Usage{Input: 1, CacheRead: 1, Output: 1, ContextSize: i}
				if err := s.FinishTurn(t.Context(), "k", Turn{SessionID: ses.ID, Usage: u}); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range each {
				if _, err := s.Update(t.Context(), "k", func(x *Session) error { x.Compactions++; return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		_, err := b.Update(t.Context(), "k", func(x *Session) error { x.Select(ref("gamma/g1"), "gamma:p2", true); return nil })
		if err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	got := mustGet(t, a, "k")
	if got.TokensIn != 4*each || got.TokensOut != 2*each || got.Compactions != 2*each {
		t.Errorf("lost: in %d, out %d, compactions %d", got.TokensIn, got.TokensOut, got.Compactions)
	}
	if got.Override != (Override{Model: ref("gamma/g1"), Source: SourceUser}) || got.Pin.Profile != "gamma:p2" || !got.SwitchPending {
		t.Errorf("the choice was lost: %+v", got)
	}
}

func TestSelection(t *testing.T) {
	dirty := Session{
		Override: Override{Model: ref("b/n"), Source: SourceAuto, Origin: ref("a/m")},
		Pin:      Pin{Profile: "a:p", Source: SourceAuto}, Notice: Pair{Selected: ref("a/m"), Active: ref("b/n")}, Compactions: 2,
	}
	user := dirty
	user.Select(ref("c/o"), "", false)
	if diff := cmp.Diff(Session{Override: Override{Model: ref("c/o"), Source: SourceUser}, Compactions: 2}, user); diff != "" {
		t.Error(diff)
	}
	locked := dirty
	locked.SelectDefault("a:q", true)
	want := Session{Pin: Pin{Profile: "a:q", Source: SourceUser, Compactions: 2}, Compactions: 2, SwitchPending: true}
	if diff := cmp.Diff(want, locked); diff != "" {
		t.Error(diff)
	}
	legacy := Override{Model: ref("c/o")}
	if !legacy.User() || legacy.Auto() || (Override{}).User() {
		t.Error("an override without a source is the user's")
	}
}

func TestThreadInheritsTheSelection(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	mustEnsure(t, s, Seed{Key: "room", AgentID: "main", Address: room})
	thread := mustEnsure(t, s, Seed{Key: "room:topic:1", AgentID: "main", Parent: "room", Address: room})
	orphan := mustEnsure(t, s, Seed{Key: "x:topic:1", AgentID: "main", Parent: "x", Address: room})
	check := func(ses Session, want llm.ModelRef, from string) {
		t.Helper()
		o, key, err := s.Selection(t.Context(), ses)
		if err != nil || o.Model != want || key != from {
			t.Errorf("%v from %s, %v; want %v from %s", o.Model, key, err, want, from)
		}
	}
	check(thread, llm.ModelRef{}, "room:topic:1")
	check(orphan, llm.ModelRef{}, "x:topic:1")
	mustUpdate(t, s, "room", func(x *Session) { x.Override = Override{Model: ref("b/n"), Source: SourceAuto, Origin: ref("a/m")} })
	check(thread, llm.ModelRef{}, "room:topic:1") // the system's own doing is not inherited
	mustUpdate(t, s, "room", func(x *Session) { x.Select(ref("c/o"), "", false) })
	check(thread, ref("c/o"), "room")
	thread = mustUpdate(t, s, thread.Key, func(x *Session) { x.Select(ref("d/p"), "", false) })
	check(thread, ref("d/p"), "room:topic:1")
	thread = mustUpdate(t, s, thread.Key, func(x *Session) { x.SelectDefault("", false) })
	check(thread, llm.ModelRef{}, "room:topic:1") // its own choice, although that is no model
	if thread.Override.User() || thread.Override.Auto() {
		t.Errorf("%+v", thread.Override)
	}
}

// TestResetsOfOneInstantKeepTheirOrder: what was said under a key is read in the order in which it was said,
// also where people reset twice in the same millisecond.
func TestResetsOfOneInstantKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := []string{"z", "a", "m"} // as chance may order them
		s, err := New(t.Context(), openFile(t, newPath(t), -1), Deps{NewID: func() string {
			id := ids[0]
			ids = ids[1:]
			return id
		}})
		if err != nil {
			t.Fatal(err)
		}
		mustEnsure(t, s, Seed{Key: "k", AgentID: "main", Address: room})
		<-time.After(time.Minute)
		for range 2 {
			if _, err := s.Reset(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.Transcripts(t.Context(), "k"); err != nil || !slices.Equal(got, []string{"z", "a", "m"}) {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, newPath(t), -1)
		before := mustEnsure(t, s, Seed{Key: "k", AgentID: "main", Address: room})
		talk := time.Now().Add(-time.Hour)
		if err := s.Touch(t.Context(), "k", talk); err != nil {
			t.Fatal(err)
		}
		cases := []struct {
			name     string
			override Override
			want     Override
		}{
			{"automatic", Override{Model: ref("b/n"), Source: SourceAuto, Origin: ref("a/m")}, Override{}},
			{"user", Override{Model: ref("c/o"), Source: SourceUser}, Override{Model: ref("c/o"), Source: SourceUser}},
			{"legacy user", Override{Model: ref("c/o")}, Override{Model: ref("c/o")}},
		}
		for i, c := range cases {
			<-time.After(time.Minute)
			mustUpdate(t, s, "k", func(x *Session) {
				x.Override, x.Pin = c.override, Pin{Profile: "c:p2", Source: SourceUser}
				x.Notice, x.SwitchPending = Pair{Selected: ref("c/o"), Active: ref("d/p")}, true
				x.Think, x.UsageMode, x.Compactions, x.TokensIn, x.LastTurn = "high", "full", 4, 9, LastTurn{In: 9}
			})
			got, err := s.Reset(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			want := Session{
				Key: "k", ID: fmt.Sprintf("s%d", i+2), AgentID: "main", Address: room, StartedAt: time.Now(), UpdatedAt: time.Now(),
				LastInteractionAt: talk, Override: c.want, Think: "high", UsageMode: "full",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s:\n%s", c.name, diff)
			}
			if diff := cmp.Diff(want, mustGet(t, s, "k"), cmp.Comparer(time.Time.Equal)); diff != "" {
				t.Errorf("%s, stored:\n%s", c.name, diff)
			}
		}
		old, err := s.Archive(t.Context(), "k", 10)
		if err != nil || len(old) != 3 || old[2].ID != before.ID || !old[2].StartedAt.Equal(before.StartedAt) {
			t.Errorf("archive: %v, %v", old, err)
		}
		// A turn that began before the reset changes nothing of the new session.
		err = s.FinishTurn(t.Context(), "k", Turn{
			ID: "late", SessionID: before.ID, Entries: []Entry{say(llm.RoleUser, "late")}, Usage: llm.Usage{Input: 5},
			Decision: json.RawMessage(`{}`), Change: func(x *Session) error { x.Notice.Active = ref("d/p"); return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := mustGet(t, s, "k"); got.TokensIn != 0 || got.Notice != (Pair{}) {
			t.Errorf("a late turn changed %+v", got)
		}
		if got, err := s.Compact(t.Context(), "k", before.ID, Entry{Kind: KindCompaction, FirstKept: 1}); err != nil || got.Compactions != 0 {
			t.Errorf("a late compaction: %+v, %v", got, err)
		}
		if got, err := s.Load(t.Context(), before.ID); err != nil || len(got) != 2 {
			t.Errorf("the old transcript lacks its end: %v, %v", got, err)
		}
	})
}

func TestTurnIsWrittenAsAWhole(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	ctx := t.Context()
	ses := mustEnsure(t, s, Seed{Key: "k", AgentID: "main", Address: room})
	turn := Turn{
		ID: "t1", SessionID: ses.ID, Entries: []Entry{say(llm.RoleUser, "a"), say(llm.RoleAssistant, "b")},
		Usage: llm.Usage{Input: 1, Output: 2, ContextSize: 3}, Decision: json.RawMessage(`{"n":1}`),
		Change: func(x *Session) error {
			x.Pin = Pin{Profile: "a:p", Source: SourceAuto}
			return nil
		},
	}
	if err := s.FinishTurn(ctx, "k", turn); err != nil {
		t.Fatal(err)
	}
	broken := turn
	stop := errors.New("stop")
	broken.Change = func(x *Session) error { return stop }
	if err := s.FinishTurn(ctx, "k", broken); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	got := mustGet(t, s, "k")
	if got.Pin.Profile != "a:p" || got.TokensIn != 1 || got.TokensOut != 2 || got.TokensContext != 3 || got.LastTurn != (LastTurn{In: 1, Out: 2}) {
		t.Errorf("%+v", got)
	}
	if entries, err := s.Load(ctx, ses.ID); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
	if d, err := s.Decisions(ctx, "k", 9); err != nil || len(d) != 1 {
		t.Errorf("%v, %v", d, err)
	}
	after, err := s.Compact(ctx, "k", ses.ID, Entry{Kind: KindCompaction, Message: llm.Text(llm.RoleUser, "sum"), FirstKept: 2})
	if err != nil || after.Compactions != 1 {
		t.Errorf("%+v, %v", after, err)
	}
	if entries, err := s.Load(ctx, ses.ID); err != nil || len(entries) != 2 || entries[0].Message.PlainText() != "sum" {
		t.Errorf("%v, %v", entries, err)
	}
	if err := s.FinishTurn(ctx, "nobody", turn); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestTouchAndSwitch(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	mustEnsure(t, s, Seed{Key: "k", AgentID: "main", Address: room})
	ctx := t.Context()
	now := time.UnixMilli(time.Now().UnixMilli())
	if err := errors.Join(s.Touch(ctx, "k", now), s.Touch(ctx, "k", now.Add(-time.Hour))); err != nil {
		t.Fatal(err)
	}
	if got := mustGet(t, s, "k").LastInteractionAt; !got.Equal(now) {
		t.Errorf("last interaction %v, want %v", got, now)
	}
	if err := s.Touch(ctx, "nobody", now); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	mustUpdate(t, s, "k", func(x *Session) { x.Select(ref("a/m"), "a:q", true) })
	taken, pending, err := s.TakeSwitch(ctx, "k")
	if err != nil || !pending || taken.Override.Model != ref("a/m") {
		t.Errorf("switch: %+v, %v, %v", taken, pending, err)
	}
	if _, pending, err := s.TakeSwitch(ctx, "k"); err != nil || pending {
		t.Errorf("the switch is still pending: %v", err)
	}
}

func TestClearAutoOnlyWhatWasProbed(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	probed := Override{Model: ref("b/n"), Source: SourceAuto, Origin: ref("a/m")}
	for key, o := range map[string]Override{
		"same": probed, "moved": {Model: ref("b/x"), Source: SourceAuto, Origin: ref("a/m")}, "user": {Model: ref("b/n"), Source: SourceUser},
	} {
		mustEnsure(t, s, Seed{Key: key, AgentID: "main", Address: room})
		mustUpdate(t, s, key, func(x *Session) { x.Override = o })
		cleared, err := s.ClearAuto(t.Context(), key, probed)
		if err != nil || cleared != (key == "same") || mustGet(t, s, key).Override.Model.IsZero() != cleared {
			t.Errorf("%s: cleared %v, %v", key, cleared, err)
		}
	}
	auto, err := s.List(t.Context(), Filter{AutoOnly: true})
	if err != nil || len(auto) != 1 || auto[0].Key != "moved" {
		t.Errorf("%v, %v", auto, err)
	}
}

func TestList(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	for i := range 5 {
		ses := mustEnsure(t, s, Seed{Key: fmt.Sprintf("k%d", i), AgentID: []string{"main", "ops"}[i%2], Address: room})
		if i == 2 {
			mustUpdate(t, s, ses.Key, func(x *Session) { x.Notice = Pair{Selected: ref("a/m"), Active: ref("b/n")} })
		}
	}
	for _, c := range []struct {
		f    Filter
		want int
	}{{Filter{}, 5}, {Filter{AgentID: "ops"}, 2}, {Filter{Limit: 3}, 3}, {Filter{FallenBack: true}, 1}, {Filter{AutoOnly: true}, 0}} {
		got, err := s.List(t.Context(), c.f)
		if err != nil || len(got) != c.want {
			t.Errorf("%+v: %d sessions, %v; want %d", c.f, len(got), err, c.want)
		}
	}
}

func TestRename(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	ctx := t.Context()
	group := mustEnsure(t, s, Seed{Key: "g:1", AgentID: "main", Address: room})
	topic := mustEnsure(t, s, Seed{Key: "g:1:topic:5", AgentID: "main", Parent: "g:1", Address: room})
	early := mustEnsure(t, s, Seed{Key: "g:2", AgentID: "main", Address: room}) // arrived before the news
	if err := s.AppendDecision(ctx, "g:1", json.RawMessage(`{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the news may come twice
		if err := s.Rename(ctx, "g:1", "g:2"); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []string{"g:1", "g:2"} {
		if got := mustGet(t, s, k); got.ID != group.ID || got.Key != "g:2" {
			t.Errorf("%s: %+v", k, got)
		}
		if d, err := s.Decisions(ctx, k, 9); err != nil || len(d) != 1 {
			t.Errorf("decisions of %s: %v, %v", k, d, err)
		}
	}
	if got := mustGet(t, s, "g:1:topic:5"); got.ID != topic.ID || got.Key != "g:2:topic:5" || got.Parent != "g:2" {
		t.Errorf("topic: %+v", got)
	}
	if err := s.Touch(ctx, "g:1", time.Now()); err != nil || mustGet(t, s, "g:2").LastInteractionAt.IsZero() {
		t.Errorf("touched under the old key: %v", err)
	}
	if ses, created, err := s.Ensure(ctx, Seed{Key: "g:1", AgentID: "main", Address: room}); err != nil || created || ses.Key != "g:2" {
		t.Errorf("ensured under the old key: %+v, %v, %v", ses, created, err)
	}
	if old, err := s.Archive(ctx, "g:2", 9); err != nil || len(old) != 1 || old[0].ID != early.ID {
		t.Errorf("archive: %v, %v", old, err)
	}
	if err := s.Rename(ctx, "none", "other"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestRenameOfThreadsOnly: a conversation in which only threads have sessions moves too.
func TestRenameOfThreadsOnly(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	topic := mustEnsure(t, s, Seed{Key: "g:1:topic:5", AgentID: "main", Parent: "g:1", Address: room})
	if err := s.Rename(t.Context(), "g:1", "g:2"); err != nil {
		t.Fatal(err)
	}
	if got := mustGet(t, s, "g:2:topic:5"); got.ID != topic.ID || got.Parent != "g:2" {
		t.Errorf("topic: %+v", got)
	}
}

func TestDecisionsAreBounded(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	mustEnsure(t, s, Seed{Key: "k", AgentID: "main", Address: room})
	const n = maxDecisions + 15
	for i := 0; i < n; i += 5 {
		var batch []json.RawMessage
		for j := i; j < i+5; j++ {
			batch = append(batch, json.RawMessage(fmt.Sprintf(`{"n":%d}`, j)))
		}
		if err := s.AppendDecision(t.Context(), "k", batch...); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Decisions(t.Context(), "k", 1000)
	if err != nil || len(got) != maxDecisions || string(got[0].Record) != fmt.Sprintf(`{"n":%d}`, n-1) {
		t.Errorf("%d records, the newest %s, %v", len(got), got[0].Record, err)
	}
	if err := s.AppendDecision(t.Context(), "nobody", json.RawMessage("{}")); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestTheFirstSchemaStillOpens(t *testing.T) {
	now, err := migrations.ReadFile("migrations/00001_first.sql")
	if err != nil {
		t.Fatal(err)
	}
	then, err := os.ReadFile("testdata/frozen/00001_first.sql")
	if err != nil {
		t.Fatal(err)
	}
	if string(now) != string(then) {
		t.Error("a released migration was edited: add a new one instead")
	}
	path := newPath(t)
	db := openFile(t, path, 0)
	if err := sqlite.Migrate(t.Context(), db, "session", os.DirFS("testdata/frozen")); err != nil {
		t.Fatal(err)
	}
	err = db.Write(t.Context(), func(tx *sqlite.Tx) error {
		for _, statement := range []string{
			`INSERT INTO sessions (key, session_id, agent_id, parent_key, chat_type, address_json, started_at, last_interaction_at,
				updated_at, model_override) VALUES ('k', 's', 'main', '', 'direct', '{"channel":"web","conversation":"c","kind":"direct"}', 5, 0, 5, 'a/m')`,
			`INSERT INTO transcript VALUES ('s', 1, 'user', 'message', '{"role":"user","parts":[{"text":"hi"}]}', '', '', 5)`,
		} {
			if _, err := tx.ExecContext(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t, path, 0)
	if got := mustGet(t, s, "k"); got.Override.Model != ref("a/m") || got.Address.Channel != "web" {
		t.Errorf("%+v", got)
	}
	if got, err := s.Load(t.Context(), "s"); err != nil || len(got) != 1 || got[0].Message.PlainText() != "hi" {
		t.Errorf("%v, %v", got, err)
	}
}
