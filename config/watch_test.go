package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeFile is a file whose stamp the test sets, with a Watcher that looks at it.
type fakeFile struct {
	mu       sync.Mutex
	stamp    stamp
	restless bool // every look finds it changed
	err      error
	loads    int
	changes  []Change
	watcher  *Watcher
}

func (f *fakeFile) look() stamp {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.restless {
		f.stamp.modified++
	}
	return f.stamp
}

func (f *fakeFile) load() (*Config, []Warning, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loads++
	return &Config{}, nil, f.err
}

func (f *fakeFile) apply(c Change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes = append(f.changes, c)
	return c.Err
}

// change alters the file.
func (f *fakeFile) change(how func(f *fakeFile)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how(f)
}

// seen returns how often it was loaded and what was reported.
func (f *fakeFile) seen() (int, []Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loads, slices.Clone(f.changes)
}

// watched starts a Watcher over a file, in the bubble of the caller, until the test ends.
func watched(t *testing.T) *fakeFile {
	f := &fakeFile{stamp: stamp{path: "bot.yaml", modified: 1, inode: 1}}
	f.watcher = &Watcher{stat: f.look, load: f.load, last: f.stamp, kick: make(chan struct{}, 1), asked: make(chan chan error), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.watcher.Run(ctx, f.apply)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

// pass lets d pass in the bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestWatcherReloadsASettledFileOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := watched(t)
		expect := func(when string, want int) {
			t.Helper()
			if n, changes := f.seen(); n != want || len(changes) != want {
				t.Fatalf("%s: %d loads, changes %v", when, n, changes)
			}
		}
		pass(time.Minute)
		expect("unchanged", 0)
		f.change(func(f *fakeFile) { f.stamp.modified = 2 })
		pass(pollEvery + settleFor/2)
		f.change(func(f *fakeFile) { f.stamp.size = 100 })
		pass(settleFor)
		expect("still being written", 0)
		pass(settleFor)
		expect("settled", 1)
		pass(time.Minute)
		expect("long after", 1)
	})
}

func TestWatcherIsRenameSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := watched(t)
		old := f.look()
		f.change(func(f *fakeFile) { f.stamp = stamp{} }) // the gap between removing and renaming
		pass(pollEvery + settleFor/2)
		f.change(func(f *fakeFile) { f.stamp = old }) // an editor put the same file back
		pass(time.Minute)
		if n, _ := f.seen(); n != 0 {
			t.Fatalf("%d loads though nothing changed", n)
		}
		f.change(func(f *fakeFile) { f.stamp.inode = 2 }) // another file of the same size and time
		pass(time.Minute)
		if n, _ := f.seen(); n != 1 {
			t.Fatalf("%d loads of a replaced file", n)
		}
	})
}

func TestWatcherReportsABrokenFileOnceAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := watched(t)
		f.change(func(f *fakeFile) { f.err, f.stamp.modified = errors.New("broken"), 2 })
		pass(time.Minute)
		if _, changes := f.seen(); len(changes) != 1 || changes[0].Err == nil {
			t.Fatalf("changes %v", changes)
		}
		f.watcher.Reload()
		synctest.Wait()
		if _, changes := f.seen(); len(changes) != 2 {
			t.Fatalf("after a request: changes %v", changes)
		}
		f.change(func(f *fakeFile) { f.err, f.stamp.modified = nil, 3 })
		pass(time.Minute)
		if _, changes := f.seen(); len(changes) != 3 || changes[2].Err != nil || changes[2].Config == nil {
			t.Fatalf("after the repair: changes %v", changes)
		}
	})
}

func TestWatcherDoesNotWaitForeverForAFileThatKeepsChanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := watched(t)
		f.change(func(f *fakeFile) { f.restless = true })
		pass(pollEvery + longestWait + settleFor)
		if n, _ := f.seen(); n == 0 {
			t.Fatal("never loaded")
		}
	})
}

// TestWatcherStaysWithItsFile uses real files: the snapshot is replaced by a valid new version and
// kept when the new version is broken or gone, even if another file could be found instead.
func TestWatcherStaysWithItsFile(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	opts := Options{Dir: dir, Env: env(StateDirVar, state)}
	p := place(t, state, "logging: {level: debug}", 0o600)
	place(t, dir, "logging: {level: error}", 0o600)
	c, _, err := Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWatcher(opts, c)
	if w.stat() != w.last {
		t.Error("a file that did not change looks changed")
	}
	reload := func(text string) (*Config, error) {
		t.Helper()
		tmp := filepath.Join(state, "new")
		if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, p); err != nil {
			t.Fatal(err)
		}
		if w.stat() == w.last {
			t.Error("a replaced file looks unchanged")
		}
		c, _, err := w.load()
		return c, err
	}
	if n, err := reload("logging: {level: warn}"); err != nil || n.Logging.Level != "warn" || c.Logging.Level != "debug" {
		t.Errorf("reload: %v", err)
	}
	if _, err := reload("loging: {}"); err == nil || !strings.Contains(err.Error(), p+":1:1: loging: unknown key") {
		t.Errorf("broken reload: %v", err)
	}
	for _, text := range []string{"", "\n\n", "# all of it\n---\n"} {
		if _, err := reload(text); err == nil || !strings.Contains(err.Error(), p+": the file is empty") {
			t.Errorf("emptied to %q: %v", text, err)
		}
	}
	if _, err := reload("{}"); err != nil {
		t.Errorf("nothing, on purpose: %v", err)
	}
	if err := os.Remove(p); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.load(); err == nil || !strings.Contains(err.Error(), "there is no such file") {
		t.Errorf("removed file: %v", err)
	}
}

// A bot that began without a configuration, or with an empty one, may go on so.
func TestAnEmptyFileMayStayEmpty(t *testing.T) {
	state := t.TempDir()
	p := place(t, state, "# later\n", 0o600)
	opts := Options{Env: env(StateDirVar, state)}
	c, _, err := Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWatcher(opts, c)
	for _, text := range []string{"", "logging: {level: warn}"} {
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.load(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestReloadByHandIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := watched(t)
		f.change(func(f *fakeFile) { f.stamp.modified++ })
		if err := f.watcher.Now(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if loads, changes := f.seen(); loads != 1 || len(changes) != 1 {
			t.Errorf("the edited file was read %d times and applied %d times", loads, len(changes))
		}
		wrong := errors.New("wrong")
		f.change(func(f *fakeFile) { f.err = wrong })
		if err := f.watcher.Now(t.Context()); !errors.Is(err, wrong) {
			t.Errorf("who asked is told: %v", err)
		}
	})
}

func TestReloadByHandDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFile{}
		f.watcher = NewWatcher(Options{Env: env()}, &Config{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.watcher.Run(ctx, f.apply)
		if err := f.watcher.Now(t.Context()); !errors.Is(err, ErrStopping) {
			t.Errorf("after the end: %v", err)
		}
		idle := NewWatcher(Options{Env: env()}, &Config{})
		if err := idle.Now(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("before the beginning: %v", err)
		}
	})
}
