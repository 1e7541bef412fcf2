// Package command speaks with programs on this machine, and runs programs for package stt.
//
// A program gets an argument vector and never a shell, a private folder (0700) that is removed
// afterwards, few variables of ours and none of our keys, and a process group of its own, of which
// nothing is left when the call returns (spec/chat.md §8, S11).
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"understudy/internal/secret"
)

// Bounds of a program.
const (
	largestComplaint = 1 << 20 // bytes of standard error that are read
	longestComplaint = 2 << 10 // bytes of it in the log
	mostFiles        = 1000    // in its folder
	watchEvery       = 50 * time.Millisecond
	dyingTime        = 2 * time.Second // for pipes that a program's child holds
)

// inherited are the variables that a program gets of ours.
var inherited = []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "SYSTEMROOT"}

// Program is one call of a program.
type Program struct {
	Command string
	Args    []string
	Env     map[string]secret.String
	Cwd     string // "" = Dir
	Dir     string // its private folder, see TempDir
	Stdin   string
	// Limit bounds its standard output and its folder, each, in bytes.
	Limit int64
	Log   *slog.Logger // nil = what it complains about is not kept
}

// Errors of programs. They name no text that a program was given.
var (
	ErrTooMuch  = errors.New("the program wrote too much")
	ErrNotFound = errors.New("the program is not installed")
)

// TempDir makes a private folder and returns how to remove it.
func TempDir() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "understudy-") // mode 0700
	if err != nil {
		return "", nil, fmt.Errorf("a private folder: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// Run runs the program to its end and returns its standard output. When the context ends, or it writes
// too much, it is killed with its children.
func (p Program) Run(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, p.Command, p.Args...)
	cmd.Dir, cmd.Env = p.Cwd, p.environment()
	if cmd.Dir == "" {
		cmd.Dir = p.Dir
	}
	out := &capped{most: p.Limit, full: func() { cancel(ErrTooMuch) }}
	complaints := &capped{most: largestComplaint, full: func() {}}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(p.Stdin), out, complaints
	ownGroup(cmd)
	cmd.Cancel = func() error { killGroup(cmd); return nil }
	cmd.WaitDelay = dyingTime
	if err := cmd.Start(); err != nil {
		return nil, started(ctx, err)
	}
	watched := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() { p.watch(watched, cancel) })
	err := cmd.Wait()
	killGroup(cmd) // what it left behind
	close(watched)
	watcher.Wait()
	p.complain(complaints.data)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case size(p.Dir) > p.Limit:
		return nil, ErrTooMuch
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // a child kept a pipe open; it is gone now
		return nil, ended(err)
	}
	return out.data, nil
}

func (p Program) environment() []string {
	env := []string{"TMPDIR=" + p.Dir}
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for name, value := range p.Env {
		env = append(env, name+"="+value.Reveal())
	}
	return env
}

// watch ends a program whose folder grows too large.
func (p Program) watch(done <-chan struct{}, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if size(p.Dir) > p.Limit {
				cancel(ErrTooMuch)
				return
			}
		}
	}
}

// size is how much is in a folder, in bytes; a folder of very many files counts as endless.
func size(dir string) int64 {
	var sum int64
	files := 0
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it was removed meanwhile
		}
		if files++; files > mostFiles {
			sum = 1 << 62
			return fs.SkipAll
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

func (p Program) complain(text []byte) {
	if p.Log == nil || len(text) == 0 {
		return
	}
	p.Log.Debug("program_complained", "program", filepath.Base(p.Command), "text", strings.ToValidUTF8(string(text[:min(len(text), longestComplaint)]), ""))
}

// started makes the error of a start fit to be shown.
func started(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return ErrNotFound
	}
	return errors.New("the program could not be started")
}

// ended makes the error of an end fit to be shown.
func ended(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("the program ended with %s", exit.ProcessState)
	}
	return errors.New("the program did not end well")
}

// capped keeps what is written to it, up to a size.
type capped struct {
	data []byte
	most int64
	full func()
}

// Write implements io.Writer. It takes everything, so that a program that complains a lot does not
// stand still, and keeps what fits.
func (c *capped) Write(b []byte) (int, error) {
	if room := c.most - int64(len(c.data)); int64(len(b)) > room {
		c.data = append(c.data, b[:max(room, 0)]...)
		c.full()
		return len(b), nil
	}
	c.data = append(c.data, b...)
	return len(b), nil
}

// ReadFile returns what a program wrote to a file of its folder, nil when it wrote none. A link is not
// followed: the program does not choose what of ours is read.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil || !info.Mode().IsRegular():
		return nil, errors.New("what the program wrote is no file")
	case info.Size() > limit:
		return nil, ErrTooMuch
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.New("what the program wrote cannot be read")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, errors.New("what the program wrote cannot be read")
	case int64(len(data)) > limit:
		return nil, ErrTooMuch
	}
	return data, nil
}

// Expand replaces placeholders such as {{Text}} in arguments and tells which of them were there.
func Expand(args []string, values map[string]string) (out []string, used map[string]bool) {
	used = map[string]bool{}
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "{{"+name+"}}", strings.ReplaceAll(value, "\x00", ""))
	}
	r := strings.NewReplacer(pairs...) // one pass: a value is never looked at again
	for _, a := range args {
		for name := range values {
			used[name] = used[name] || strings.Contains(a, "{{"+name+"}}")
		}
		out = append(out, r.Replace(a))
	}
	return out, used
}
