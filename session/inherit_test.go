package session

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/llm"
)

// TestInherit covers how much of a conversation a thread takes over, and when.
func TestInherit(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for name, x := range map[string]struct {
		turns, bytes int
		before       func(*testing.T, *Store)
		want         []string
	}{
		"the last turns":       {2, 1 << 20, nil, []string{"message 3", "message " + long, "message 4", "message and 4", "message four"}},
		"all of a short one":   {9, 1 << 20, nil, []string{"message 2", "message two", "message 3", "message " + long, "message 4", "message and 4", "message four"}},
		"what is small enough": {9, 1000, nil, []string{"message 4", "message and 4", "message four"}},
		"nothing fits":         {9, 10, nil, nil},
		"somebody spoke there": {9, 1 << 20, func(t *testing.T, s *Store) {
			if err := s.Touch(t.Context(), "thread", time.Now()); err != nil {
				t.Fatal(err)
			}
		}, nil},
		"it was reset": {9, 1 << 20, func(t *testing.T, s *Store) {
			if _, err := s.Reset(t.Context(), "thread"); err != nil {
				t.Fatal(err)
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, newPath(t), 0)
			parent := mustEnsure(t, s, Seed{Key: "room", AgentID: "main", Address: room})
			mustEnsure(t, s, Seed{Key: "thread", AgentID: "main", Parent: "room", Address: room})
			mustAppend(t, s, parent.ID, say(llm.RoleUser, "1"), say(llm.RoleAssistant, "one"))
			mustAppend(t, s, parent.ID, Entry{Kind: KindCompaction, Message: llm.Text(llm.RoleUser, "summary"), FirstKept: 4})
			mustAppend(t, s, parent.ID, say(llm.RoleUser, "2"), say(llm.RoleAssistant, "two"), Entry{Kind: KindNote, Message: llm.Text(llm.RoleUser, "note")},
				say(llm.RoleUser, "3"), say(llm.RoleAssistant, long))
			last := []Entry{say(llm.RoleUser, "4"), say(llm.RoleUser, "and 4"), say(llm.RoleAssistant, "four")}
			last[2].Usage = &llm.Usage{Input: 9}
			if err := s.FinishTurn(t.Context(), "room", Turn{ID: "t4", SessionID: parent.ID, Entries: last}); err != nil {
				t.Fatal(err)
			}
			if x.before != nil {
				x.before(t, s)
			}
			for range 2 { // a turn that is run again after a crash
				if err := s.Inherit(t.Context(), "thread", Bequest{From: "room", Turns: x.turns, Bytes: x.bytes}); err != nil {
					t.Fatal(err)
				}
			}
			ses := mustGet(t, s, "thread")
			got, err := s.Load(t.Context(), ses.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(x.want, texts(got)); diff != "" {
				t.Error(diff)
			}
			if name == "all of a short one" && len(TurnStarts(got)) != 3 {
				t.Errorf("turns begin at %v", TurnStarts(got))
			}
			for _, e := range got {
				if e.Usage != nil {
					t.Error("what it cost is counted twice")
				}
			}
			if ses.TokensIn != 0 || len(x.want) > 0 && !ses.LastInteractionAt.IsZero() {
				t.Errorf("%+v", ses)
			}
		})
	}
}

func TestThereIsNothingToInherit(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	mustEnsure(t, s, Seed{Key: "thread", AgentID: "main", Parent: "room", Address: room})
	if err := s.Inherit(t.Context(), "thread", Bequest{From: "room", Turns: 9, Bytes: 9999}); err != nil {
		t.Errorf("a room without a session: %v", err)
	}
}
