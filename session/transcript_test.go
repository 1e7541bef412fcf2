package session

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/llm"
)

func say(role llm.Role, text string) Entry {
	return Entry{Kind: KindMessage, Message: llm.Text(role, text), At: time.UnixMilli(1000)}
}

func texts(entries []Entry) (list []string) {
	for _, e := range entries {
		list = append(list, string(e.Kind)+" "+e.Message.PlainText())
	}
	return list
}

func mustAppend(t *testing.T, s *Store, id string, entries ...Entry) {
	t.Helper()
	if err := s.Append(t.Context(), id, entries); err != nil {
		t.Fatal(err)
	}
}

func TestTranscriptKeepsWhatItGot(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	want := []Entry{
		say(llm.RoleUser, "look"),
		{
			Kind: KindMessage, At: time.UnixMilli(2000), Model: ref("a/m"), Usage: &llm.Usage{Input: 3, Output: 4},
			Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{
				{Reasoning: &llm.Reasoning{Origin: ref("a/m"), Opaque: []byte(`{"sig":"x"}`)}},
				{ToolCall: &llm.ToolCall{ID: "1", Name: "f", Input: []byte(`{"q":1}`)}},
			}},
		},
		{Kind: KindMessage, At: time.UnixMilli(3000), Message: llm.Message{Role: llm.RoleTool, Parts: []llm.Part{
			{ToolResult: &llm.ToolResult{ID: "1", Text: "done"}}, {Image: &llm.Image{MediaType: "image/png", Data: []byte{0, 1, 2}}},
		}}},
	}
	mustAppend(t, s, "s1", want...)
	mustAppend(t, s, "s1")
	for i := range want {
		want[i].Seq = int64(i + 1)
	}
	got, err := s.Load(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err := s.Load(t.Context(), "other"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestLoadBeginsWithTheLastCompaction(t *testing.T) {
	s := newStore(t, newPath(t), 0)
	for i := 1; i <= 4; i++ {
		mustAppend(t, s, "s1", say(llm.RoleUser, fmt.Sprint(i)))
	}
	mustAppend(t, s, "s1", Entry{Kind: KindCompaction, Message: llm.Text(llm.RoleUser, "first"), FirstKept: 3, TokensBefore: 900})
	mustAppend(t, s, "s1", say(llm.RoleUser, "6"), Entry{Kind: KindNote, Message: llm.Text(llm.RoleAssistant, "7")})
	mustAppend(t, s, "s1", Entry{Kind: KindCompaction, Message: llm.Text(llm.RoleUser, "second"), FirstKept: 4})
	mustAppend(t, s, "s1", say(llm.RoleUser, "9"))
	got, err := s.Load(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"compaction second", "message 4", "message 6", "message 9"}, texts(got)); diff != "" {
		t.Error(diff)
	}
	page, err := s.Page(t.Context(), "s1", 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"note 7", "compaction second", "message 9"}, texts(page)); diff != "" {
		t.Error(diff)
	}
	if page, err = s.Page(t.Context(), "s1", page[0].Seq, 2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"compaction first", "message 6"}, texts(page)); diff != "" {
		t.Error(diff)
	}
	if page[0].TokensBefore != 900 || page[0].FirstKept != 3 {
		t.Errorf("%+v", page[0])
	}
}

func TestConcurrentAppendsKeepTheirOrder(t *testing.T) {
	path := newPath(t)
	stores := []*Store{newStore(t, path, 0), newStore(t, path, 0)}
	const each = 20
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range each {
				a, b := say(llm.RoleUser, fmt.Sprintf("%d/%d", w, i)), say(llm.RoleAssistant, fmt.Sprintf("%d/%d", w, i))
				if err := stores[w%2].Append(t.Context(), "s1", []Entry{a, b}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := stores[0].Load(t.Context(), "s1")
	if err != nil || len(got) != 4*each*2 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for i := 0; i < len(got); i += 2 {
		if got[i].Seq != int64(i+1) || got[i].Message.PlainText() != got[i+1].Message.PlainText() {
			t.Fatalf("entries %d and %d do not belong together", i, i+1)
		}
	}
}
