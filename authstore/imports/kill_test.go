package imports

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"understudy/authstore"
	"understudy/failover/policy"
)

// The variables that make the test binary an import that is killed at a step.
const (
	childEnv = "IMPORTS_TEST_DIR"
	stepEnv  = "IMPORTS_TEST_STEP"
)

// dying is a store whose process is killed before or after one of its calls.
type dying struct {
	*authstore.Store
	step string
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (d dying) at(step string) {
	if d.step == step {
		die()
	}
}

func (d dying) Receipt(ctx context.Context, source string) (authstore.Receipt, bool, error) {
	d.at("before receipt")
	r, ok, err := d.Store.Receipt(ctx, source)
	d.at("after receipt")
	return r, ok, err
}

func (d dying) Import(ctx context.Context, b authstore.Batch) (authstore.Taken, error) {
	d.at("before import")
	t, err := d.Store.Import(ctx, b)
	d.at("after import")
	return t, err
}

func dieAt(dir, step string) {
	o := Options{StateDir: dir, Main: "main", Rules: policy.DefaultRules(), Now: time.Now}
	o.Open = func(ctx context.Context, agent string) (Store, error) {
		s, err := authstore.Open(ctx, authstore.Path(dir, agent), authstore.Deps{Log: slog.New(slog.DiscardHandler)})
		return dying{s, step}, err
	}
	_, _ = Run(context.Background(), o)
	if step == "at the end" {
		die()
	}
}

func TestKilledImportsLoseNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	steps := []string{"before receipt", "after receipt", "before import", "after import", "at the end"}
	for _, step := range append(steps, "between link and remove") {
		t.Run(step, func(t *testing.T) {
			h := newHouse(t)
			path := write(t, h.dir, agentDir+authFile, `{"groq":{"key":"g1"}}`)
			write(t, h.dir, agentDir+profilesFile, `{"profiles":{"openai:a":{"type":"oauth","provider":"openai","access":"A","refresh":"R","expires":5000000000000}}}`)
			if step == "between link and remove" {
				if err := os.Link(path, path+".imported-20200101T000000Z"); err != nil {
					t.Fatal(err)
				}
			} else {
				child := exec.CommandContext(t.Context(), self)
				child.Env = append(os.Environ(), childEnv+"="+h.dir, stepEnv+"="+step)
				var exit *exec.ExitError
				if err := child.Run(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("the child ended with %v", err)
				}
			}
			h.run(nil)
			s := h.store("main")
			if got := secretOf(t, s, "groq:default") + " " + secretOf(t, s, "openai:a"); got != "g1/ A/R" {
				t.Errorf("the store holds %s", got)
			}
			archives, err := filepath.Glob(filepath.Join(h.dir, agentDir, "*.imported-*"))
			if err != nil || len(archives) < 2 {
				t.Errorf("archives %v %v", archives, err)
			}
			if results := h.run(nil); len(results) > 0 {
				t.Errorf("something is left to do: %+v", results)
			}
		})
	}
}
