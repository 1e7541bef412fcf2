package app

import (
	"context"
	"sync"
	"time"

	"understudy/internal/sqlite"
)

const (
	// touchEvery is how often the database is written only to see whether that works, at most.
	touchEvery = 5 * time.Second
	// touchLimit is how long that may take. A database that another process holds for a moment counts as
	// writable.
	touchLimit = time.Second
	// unstoredFor is how long an event that could not be stored counts when nothing came since then: the
	// platforms say it again within five minutes, and what is written to see may need less room.
	unstoredFor = 10 * time.Minute
)

// Why nothing is taken in, for people.
const (
	textDiskFull   = "the disk of the state directory is full: what people write is not taken in and waits at its platform until you make room there"
	textUnwritable = "the database cannot be written: what people write is not taken in and waits at its platform; `bot doctor` says what to do"
)

// touched is what came of the last look whether the database can be written.
type touched struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// unwritable says why what people write cannot be stored, "" = it can (spec/chat.md §7.3). What failed last
// counts until something was stored: a little may still be written where a message does not fit.
func (a *App) unwritable(ctx context.Context) string {
	now := a.opts.Clock.Now()
	err := a.touch(ctx, now)
	if at, failed := a.inbound.Unstored(); err == nil && failed != nil && time.Since(at) < unstoredFor {
		err = failed
	}
	switch {
	case err == nil:
		return ""
	case sqlite.Full(err):
		return textDiskFull
	}
	return textUnwritable
}

// touch writes to the database, unless that was done a moment ago. Who comes while another one does it goes
// by what was found before.
func (a *App) touch(ctx context.Context, now time.Time) error {
	t := &a.touched
	t.mu.Lock()
	if since := now.Sub(t.at); !t.at.IsZero() && since >= 0 && since < touchEvery {
		defer t.mu.Unlock()
		return t.err
	}
	t.at = now
	t.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), touchLimit)
	defer cancel()
	err := a.db.Touch(ctx)
	if sqlite.Busy(err) || ctx.Err() != nil {
		err = nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	return err
}
