package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"understudy/internal/secret"
)

// Bounds of what is typed or pasted, in bytes.
const (
	maxSecret = 64 << 10 // a key or token
	maxPaste  = 16 << 10 // an address
)

var errInterrupted = errors.New("stopped; nothing was changed")

// readSecret takes a secret from an environment variable, a prompt that shows nothing, or standard
// input. When ctx ends at the prompt, the terminal is as it was before.
func readSecret(ctx context.Context, o Options, std Std, n NewCredential) (secret.String, error) {
	if n.FromEnv != "" {
		s := secret.New(o.getenv(n.FromEnv))
		if s.IsZero() {
			return s, fmt.Errorf("the environment variable %s is not set", n.FromEnv)
		}
		return s, nil
	}
	var raw []byte
	var err error
	if term.IsTerminal(int(std.In.Fd())) {
		fmt.Fprintf(std.Err, "Secret of %s (it is not shown): ", n.Profile)
		raw, err = readHidden(ctx, std.In)
		fmt.Fprintln(std.Err)
	} else {
		raw, err = io.ReadAll(io.LimitReader(bufio.NewReader(std.In), maxSecret+1))
	}
	switch s := secret.New(string(raw)); {
	case err != nil:
		return s, err
	case s.IsZero():
		return s, errors.New("no secret was given; nothing was changed")
	case len(raw) > maxSecret:
		return s, errors.New("the secret is longer than 64 KB; nothing was changed")
	default:
		return s, nil
	}
}

// readHidden reads a line from a terminal that shows nothing of it.
func readHidden(ctx context.Context, in *os.File) ([]byte, error) {
	fd := int(in.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	raw, err := unlessEnded(ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	if errors.Is(err, errInterrupted) {
		awaitHidden(fd, *before)
		err = errors.Join(err, term.Restore(fd, before))
	}
	return raw, err
}

// awaitHidden waits until the read that is left behind has hidden what is typed: it may be about to do so
// only now, and would undo that the terminal is restored. A terminal that hid it before looks the same.
func awaitHidden(fd int, before term.State) {
	for range 1000 {
		if now, err := term.GetState(fd); err != nil || *now != before {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// readLine reads one line, or what there is of it at the end of the input.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	line, err := unlessEnded(ctx, func() (string, error) {
		return bufio.NewReader(io.LimitReader(in, maxPaste)).ReadString('\n')
	})
	if errors.Is(err, io.EOF) && strings.TrimSpace(line) != "" {
		err = nil
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("nothing was pasted; nothing was changed")
	}
	return line, err
}

// unlessEnded returns what read returns, or errInterrupted when ctx ends before. A read from a terminal
// cannot be called back: it is left behind, and its end is that of the process or the next line.
func unlessEnded[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	c := make(chan result, 1)
	go func() {
		v, err := read()
		c <- result{v, err}
	}()
	select {
	case r := <-c:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, errInterrupted
	}
}
