package console

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"understudy/chat"
)

// ErrUnanswered is returned by Pipe when at least one message ended in an error instead of an
// answer.
var ErrUnanswered = errors.New("not every message was answered")

// Pipe is `bot chat` without a terminal: every line of in is a message, and the next one waits for
// its answer. Answers, replies of commands, and errors (they stand where an answer would) go to
// out, notices to notes. Empty lines are skipped; at the end of in, Pipe returns behind the last
// answer. The link should be one of AccountWhole.
//
// Reading a line cannot be interrupted: when ctx ends, Pipe returns at the next line at the latest.
func Pipe(ctx context.Context, link Link, in io.Reader, out, notes io.Writer) error {
	p := pipe{link: link, out: out, notes: notes}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, MaxText+2)
	for lines.Scan() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if text := strings.TrimSpace(lines.Text()); text != "" {
			if err := p.exchange(ctx, text); err != nil {
				return err
			}
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return ErrTooLong
	case err != nil:
		return fmt.Errorf("read the next message: %w", err)
	}
	if err := p.rest(); err != nil {
		return err
	}
	if p.failed {
		return ErrUnanswered
	}
	return nil
}

type pipe struct {
	link       Link
	out, notes io.Writer
	failed     bool
}

// exchange passes one message on and prints everything up to the end of its turn.
func (p *pipe) exchange(ctx context.Context, text string) error {
	id := rand.Text()
	if err := p.link.Say(ctx, id, text); err != nil {
		return err
	}
	for {
		select {
		case e, open := <-p.link.Events():
			if !open {
				return p.gone()
			}
			if e.Type == Done && e.ID == id {
				return nil
			}
			if err := p.print(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// rest prints what has arrived behind the last answer.
func (p *pipe) rest() error {
	for {
		select {
		case e, open := <-p.link.Events():
			if !open {
				return nil
			}
			if err := p.print(e); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (p *pipe) gone() error {
	if err := p.link.Err(); err != nil {
		return err
	}
	return ErrGone
}

func (p *pipe) print(e Event) error {
	if e.Type != Sent {
		return nil
	}
	w := p.out
	switch e.Class {
	case chat.Notice:
		w = p.notes
	case chat.Error:
		p.failed = true
	}
	if _, err := fmt.Fprintln(w, strings.TrimRight(printable(e.Text), "\n")); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// printable removes control characters: a model's text must not move the cursor, set a title or
// reach the clipboard of whoever reads it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20 || (r >= 0x7f && r < 0xa0):
			return -1
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // reorders the text around it
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
