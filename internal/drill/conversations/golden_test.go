package conversations

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"understudy/internal/drill"
)

var update = flag.Bool("update", false, "write what happens into the files")

func TestMain(m *testing.M) {
	drill.Prepare()
	goleak.VerifyTestMain(m)
}

// platforms are played in this order.
var platforms = []string{"slack", "discord", "telegram"}

// TestConversations plays testdata/*.txtar.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := readArchive(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range platforms {
				if !strings.Contains(a.section("only"), p) && a.section("only") != "" {
					continue
				}
				t.Run(p, func(t *testing.T) {
					var got string
					synctest.Test(t, func(t *testing.T) { got = play(t, p, a) })
					compare(t, a, p, got)
				})
			}
			if *update {
				if err := os.WriteFile(file, []byte(a.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// compare checks what happened on a platform, or takes it over.
func compare(t *testing.T, a *archive, platform, got string) {
	t.Helper()
	if *update {
		a.set(platform, got)
		return
	}
	if d := cmp.Diff(strings.Split(a.section(platform), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// play plays the script of a file on one platform and returns it with what came of it.
func play(t *testing.T, platform string, a *archive) string {
	w := newWorld(t, platform, a)
	w.start()
	var out strings.Builder
	for n, line := range strings.Split(strings.TrimSpace(a.section("script")), "\n") {
		if line = strings.TrimSpace(line); line == "" {
			out.WriteString("\n")
			continue
		}
		fmt.Fprintf(&out, "%s\n", line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		step, atOnce := strings.CutPrefix(line, "& ")
		seen, err := w.step(step)
		if err != nil {
			t.Fatalf("line %d, %q: %v", n+1, line, err)
		}
		if seen == nil && !atOnce {
			seen = w.watch()
		}
		for _, s := range seen {
			fmt.Fprintf(&out, "    %s\n", s)
		}
	}
	w.stop()
	if t.Failed() || testing.Verbose() {
		t.Log(w.logs.String())
	}
	return out.String()
}
