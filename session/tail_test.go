package session

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"understudy/llm"
)

// TestTurnStarts reads transcripts written down as roles: u, a, t for a result, c for a summary, n for a
// note, each perhaps with the number of its turn.
func TestTurnStarts(t *testing.T) {
	kinds := map[byte]Entry{
		'u': say(llm.RoleUser, ""), 'a': say(llm.RoleAssistant, ""), 't': say(llm.RoleTool, ""),
		'c': {Kind: KindCompaction, Message: llm.Text(llm.RoleUser, "")}, 'n': {Kind: KindNote, Message: llm.Text(llm.RoleUser, "")},
	}
	for _, x := range []struct {
		name    string
		entries []string
		want    []int
	}{
		{"none", nil, nil},
		{"plain", []string{"u", "a", "u", "a"}, []int{0, 2}},
		{"behind a summary", []string{"c", "u", "a"}, []int{1}},
		{"tools", []string{"u", "a", "t", "a", "u", "a"}, []int{0, 4}},
		{"collected", []string{"u", "a", "u", "u", "u", "a"}, []int{0, 2}},
		{"steered", []string{"u", "a", "t", "u", "a", "u"}, []int{0, 5}},
		{"notes between", []string{"n", "u", "n", "u", "a", "n", "u"}, []int{1, 6}},
		{"a result without its turn's beginning", []string{"t", "a", "u"}, []int{2}},
		{"collected, named", []string{"u1", "a1", "u2", "u2", "a2"}, []int{0, 2}},
		{"steered, named", []string{"u1", "a1", "t1", "u1", "a1"}, []int{0}},
		{"nobody was answered", []string{"u1", "u2", "u3", "u3", "a3"}, []int{0, 1, 2}},
		{"failed behind a tool", []string{"u1", "a1", "t1", "u2", "a2"}, []int{0, 3}},
		{"behind an older version's", []string{"u", "u", "u1", "u1"}, []int{0, 2}},
	} {
		var list []Entry
		for _, text := range x.entries {
			e := kinds[text[0]]
			e.Turn = text[1:]
			list = append(list, e)
		}
		if diff := cmp.Diff(x.want, TurnStarts(list)); diff != "" {
			t.Errorf("%s: %s", x.name, diff)
		}
	}
}

func TestTailIsMadeOfWholeTurns(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	ses := mustEnsure(t, s, Seed{Key: "k", AgentID: "main", Address: room})
	for i, said := range [][]Entry{
		{say(llm.RoleUser, "1"), say(llm.RoleAssistant, "one")},
		{say(llm.RoleUser, "2")}, // failed
		{say(llm.RoleUser, "3"), say(llm.RoleUser, "and"), say(llm.RoleAssistant, "calls"), say(llm.RoleTool, "result"), say(llm.RoleUser, "but"), say(llm.RoleAssistant, "three")},
	} {
		turn := Turn{ID: fmt.Sprint(i), SessionID: ses.ID, Entries: said}
		if err := s.FinishTurn(t.Context(), "k", turn); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AppendOnce(t.Context(), "k", "a guest", []Entry{say(llm.RoleUser, "task"), say(llm.RoleAssistant, "done")}); err != nil {
		t.Fatal(err)
	}
	all, err := s.Load(t.Context(), ses.ID)
	if err != nil {
		t.Fatal(err)
	}
	for turns, want := range map[int]int{0: 11, 1: 2, 2: 8, 3: 9, 4: 11, 9: 11} {
		if got := Tail(all, turns); len(got) != want {
			t.Errorf("%d turns: %v", turns, texts(got))
		}
	}
}
