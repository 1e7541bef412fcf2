package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
)

// TestTheOperatorsFilesReachTheModel: as they are now, also while the bot runs.
func TestTheOperatorsFilesReachTheModel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "house-rules.md")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("No jokes.\n")
	synctest.Test(t, func(t *testing.T) {
		w := drill.New(t, drill.Options{Config: fmt.Sprintf("agents: {defaults: {model: {primary: alpha/a1}, systemPrompt: Be kind., systemFiles: [%q]}}\n", file)})
		w.Start()
		settle(t, w)
		for _, text := range []string{"No jokes.", "One joke a day is enough."} {
			write(text)
			pass(10 * time.Second)
			w.Telegram.UserSays(alice, alice, "hi")
			pass(10 * time.Second)
			got := w.Models.Requests()
			if last := string(got[len(got)-1].Body); !strings.Contains(last, `Be kind.\n\n# house-rules.md\n\n`+text+`\n\n`) {
				t.Errorf("the model is told %s", last)
			}
		}
	})
}
