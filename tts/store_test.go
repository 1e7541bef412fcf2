package tts

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/internal/sqlite"
)

func open(t *testing.T, path string) (*Store, func()) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return s, func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestChoicesAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bot.sqlite")
	s, done := open(t, path)
	if diff := cmp.Diff(Prefs{}, s.Current()); diff != "" {
		t.Error(diff)
	}
	at := time.UnixMilli(1_700_000_000_123)
	for _, err := range []error{
		s.SetAuto(t.Context(), Always), s.SetProvider(t.Context(), "robot"), s.SetLimit(t.Context(), 400),
		s.Note(t.Context(), Attempt{At: at, Provider: "robot", Problem: strings.Repeat("é", 400)}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := Prefs{Auto: Always, Provider: "robot", Limit: 400, Last: Attempt{At: at, Provider: "robot", Problem: strings.Repeat("é", 150)}}
	if diff := cmp.Diff(want, s.Current()); diff != "" {
		t.Error(diff)
	}
	done()
	s, done = open(t, path)
	defer done()
	if diff := cmp.Diff(want, s.Current()); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
}

// TestLatestIsSpokenOnce: the same answer is not spoken twice in a conversation, and its text is not on
// the disk.
func TestLatestIsSpokenOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bot.sqlite")
	s, done := open(t, path)
	const text = "a very particular answer"
	at := time.UnixMilli(1_700_000_000_000)
	was := func(key, text string) bool {
		t.Helper()
		ok, err := s.WasSpoken(t.Context(), key, text)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	mark := func(key, text string, at time.Time) {
		t.Helper()
		if err := s.MarkSpoken(t.Context(), key, text, at); err != nil {
			t.Fatal(err)
		}
	}
	if was("a", text) {
		t.Error("spoken before it was")
	}
	mark("a", text, at)
	if !was("a", text) || was("b", text) || was("a", "another answer") {
		t.Error("the wrong answer counts as spoken")
	}
	mark("a", "another answer", at)
	if was("a", text) {
		t.Error("an older answer counts as the last one")
	}
	mark("a", text, at)
	mark("b", "x", at.Add(keepLatest+time.Second))
	if was("a", text) {
		t.Error("kept for ever")
	}
	mark("a", text, at.Add(keepLatest))
	done()
	data, err := os.ReadFile(path)
	if err != nil || bytes.Contains(data, []byte("particular")) {
		t.Errorf("the text is in the file, %v", err)
	}
}
