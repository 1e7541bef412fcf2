package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/internal/clock"
	"understudy/llm"
)

// life is a session with what should be known of it.
type life struct {
	t     *rapid.T
	store *Store
	clock *clock.Virtual
	runs  int

	started, heard time.Time // by the rules of spec/chat.md §1.3
	updated        time.Time
}

const lifeKey = "agent:main:telegram:direct:1"

// background does one of the things that nobody asked for, or that only keep the books.
func (l *life) background(what string) error {
	ctx := l.t.Context()
	l.runs++
	id := fmt.Sprintf("run-%d", l.runs)
	ses, err := l.store.Get(ctx, lifeKey)
	if err != nil {
		return err
	}
	entry := []Entry{{Kind: KindMessage, Message: llm.Text(llm.RoleAssistant, what), At: l.clock.Now()}}
	switch what {
	case "heartbeat":
		return l.store.FinishTurn(ctx, lifeKey, Turn{
			ID: id, SessionID: ses.ID, Entries: entry, NoTotals: true, Decision: json.RawMessage(`{}`),
			Spend: []Spend{{Agent: "main", Model: ref("a/m"), Purpose: PurposeHeartbeat, Turns: 1}},
		})
	case "cron":
		return errors.Join(
			l.store.AppendOnce(ctx, lifeKey, id, entry),
			l.store.FinishTurn(ctx, lifeKey, Turn{ID: id, SessionID: ses.ID, NoTotals: true}),
		)
	case "probe":
		_, err := l.store.ClearAuto(ctx, lifeKey, Override{Model: ref("a/m"), Source: SourceAuto, Origin: ref("b/n")})
		return errors.Join(err, l.store.AddSpend(ctx, Spend{Agent: "main", Model: ref("a/m"), Purpose: PurposeProbe, Turns: 1}))
	case "notice":
		_, err := l.store.Update(ctx, lifeKey, func(s *Session) error {
			s.Notice = Pair{Selected: ref("a/m"), Active: ref("b/n"), Reason: "limited"}
			s.StartedAt, s.LastInteractionAt = l.clock.Now(), l.clock.Now() // not an update's to change
			return nil
		})
		return err
	case "compaction":
		_, err := l.store.Compact(ctx, lifeKey, ses.ID, Entry{Kind: KindCompaction, Message: llm.Text(llm.RoleUser, "before")})
		return err
	case "switch":
		_, _, err := l.store.TakeSwitch(ctx, lifeKey)
		return err
	case "answer":
		return l.store.FinishTurn(ctx, lifeKey, Turn{ID: id, SessionID: ses.ID, Entries: entry, Model: ref("a/m")})
	}
	to := room
	to.Thread = id
	_, _, err = l.store.Ensure(ctx, Seed{Key: lifeKey, AgentID: "main", Address: to})
	return err
}

// check compares the session with what is known of it.
func (l *life) check() Session {
	ses, err := l.store.Get(l.t.Context(), lifeKey)
	if err != nil {
		l.t.Fatal(err)
	}
	if !ses.StartedAt.Equal(l.started) || !ses.LastInteractionAt.Equal(l.heard) {
		l.t.Fatalf("it began at %s and was talked in at %s; that was at %s and %s", ses.StartedAt, ses.LastInteractionAt, l.started, l.heard)
	}
	if ses.UpdatedAt.Before(l.updated) {
		l.t.Fatalf("the books went back from %s to %s", l.updated, ses.UpdatedAt)
	}
	l.updated = ses.UpdatedAt
	return ses
}

// due is the rule of spec/chat.md §1.3, minute by minute.
func (l *life) due(r ResetConfig, hour int, now time.Time) bool {
	if r.Mode == "" || r.Mode == ResetNone {
		return false
	}
	if r.IdleMinutes > 0 && !l.heard.IsZero() && now.After(l.heard.Add(time.Duration(r.IdleMinutes)*time.Minute)) {
		return true
	}
	if r.Mode != ResetDaily {
		return false
	}
	for at := l.started.Truncate(time.Minute); !at.After(now); at = at.Add(time.Minute) {
		if local := at.In(now.Location()); local.Hour() == hour && local.Minute() == 0 && at.After(l.started) {
			return true
		}
	}
	return false
}

// TestOnlyPeopleKeepASessionFresh lives through days of messages and of everything that happens beside
// them: nothing but a message moves the time of the last one, nothing but a reset the beginning, and a
// reset is due exactly when the configured hour came or the silence was long enough.
func TestOnlyPeopleKeepASessionFresh(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	db := openFile(t, newPath(t), 0)
	rapid.Check(t, func(t *rapid.T) {
		v := clock.NewVirtual(time.Date(2026, 5, 1, rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"), 0, 0, time.UTC))
		store, err := New(t.Context(), db, Deps{Clock: v.Clock()})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Delete(t.Context(), lifeKey); err != nil && !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
		l := &life{t: t, store: store, clock: v, started: v.Now()}
		if _, _, err := store.Ensure(t.Context(), Seed{Key: lifeKey, AgentID: "main", Address: room}); err != nil {
			t.Fatal(err)
		}
		hour := rapid.IntRange(0, 23).Draw(t, "atHour")
		rule := ResetConfig{Mode: rapid.SampledFrom([]ResetMode{ResetNone, ResetDaily, ResetIdle}).Draw(t, "mode"), AtHour: &hour}
		rule.IdleMinutes = rapid.SampledFrom([]int{0, 1, 45, 600}).Draw(t, "idle")
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			v.Advance(v.Now().Add(time.Duration(rapid.SampledFrom([]int{0, 1, 44, 45, 46, 180, 1439}).Draw(t, "minutes")) * time.Minute))
			what := rapid.SampledFrom([]string{"message", "message", "heartbeat", "cron", "probe", "notice", "compaction", "switch", "answer", "moved"}).Draw(t, "what")
			now := v.Now().In(berlin)
			ses := l.check()
			if got, want := rule.Due(ses, now), l.due(rule, hour, now); got != want {
				t.Fatalf("at %s, begun %s, talked in %s: due %v, want %v", now, l.started, l.heard, got, want)
			}
			if what != "message" {
				if err := l.background(what); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				l.check()
				continue
			}
			if rule.Due(ses, now) {
				if _, err := store.Reset(t.Context(), lifeKey); err != nil {
					t.Fatal(err)
				}
				l.started = v.Now()
			}
			if err := store.Touch(t.Context(), lifeKey, v.Now()); err != nil {
				t.Fatal(err)
			}
			l.heard = v.Now()
			l.check()
		}
	})
}
