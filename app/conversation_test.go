package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"understudy/internal/drill"
)

// TestConversations plays testdata/*.txtar: what people see when models fail. They are the
// specification to read first; package drill explains their language.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			play(t, string(script))
		})
	}
}

// play plays a script in a bubble of its own, in which waiting costs nothing.
func play(t *testing.T, script string) {
	t.Helper()
	name := t.Name()
	synctest.Test(t, func(t *testing.T) {
		w := drill.Play(t, script)
		shown.add(name, w.Outputs())
	})
}
