package config

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// How a changed file is noticed (spec/chat.md §7.6).
const (
	pollEvery   = 2 * time.Second
	settleFor   = 500 * time.Millisecond
	longestWait = 10 * time.Second // for a file that keeps changing
)

// Change is the outcome of a reload: a new configuration, or the reason why the old one stays.
type Change struct {
	Config   *Config
	Warnings []Warning
	Err      error
}

// Watcher reloads the configuration when its file changes, or one whose text it took in, or when it is
// told to. It looks at the path again every time, so editors and tools that replace the file by renaming are noticed too.
// A file that was found at the start is never exchanged for one in another place, and one that held something
// is never exchanged for nothing: that is what a full disk, or an editor in the middle of its work, leaves.
type Watcher struct {
	load  func() (*Config, []Warning, error)
	stat  func() stamp
	last  stamp
	kick  chan struct{}
	asked chan chan error
	ended chan struct{}
}

// ErrStopping is returned by Now when nothing is reloaded any more.
var ErrStopping = errors.New("the bot is stopping; the configuration is read again by the next start")

// NewWatcher returns a Watcher for the file that loaded came from. Opts are those of its Load.
func NewWatcher(opts Options, loaded *Config) *Watcher {
	path := func() string {
		if loaded.Path != "" {
			return loaded.Path
		}
		return Locate(opts)
	}
	texts, filled := loaded.texts, !loaded.blank
	return &Watcher{
		load: func() (c *Config, ws []Warning, err error) {
			if p := path(); p != "" {
				c, ws, err = loadFile(p, opts)
			} else {
				c, ws, err = parse("", nil, opts)
			}
			if err == nil && c.blank && filled {
				return nil, nil, emptied(c.Path)
			}
			if err == nil {
				texts, filled = c.texts, !c.blank
			}
			return c, ws, err
		},
		stat: func() stamp {
			p := path()
			info, err := os.Stat(p)
			if p == "" || err != nil {
				return stamp{}
			}
			s := stampOf(p, info)
			s.texts = marks(texts)
			return s
		},
		last:  loaded.stamp,
		kick:  make(chan struct{}, 1),
		asked: make(chan chan error),
		ended: make(chan struct{}),
	}
}

// emptied is the error of a file that held something and holds nothing any more.
func emptied(path string) error {
	return &Error{Problems: []Problem{{
		File: path, Text: "the file is empty",
		Hint: "take out what is not wanted, part by part; if nothing is, restart with the empty file",
	}}}
}

// Reload asks for a reload now, whether or not the file changed: SIGHUP, or a new secret behind a
// reference. It does not wait; requests that come while one is pending are one.
func (w *Watcher) Reload() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// Now reloads like Reload, waits, and returns why the new configuration is not in use. It needs Run.
func (w *Watcher) Now(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case w.asked <- answer:
	case <-w.ended:
		return ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run calls apply with the outcome of every reload, one after the other, until ctx ends; what apply
// returns is for who asked with Now. It may be called once.
func (w *Watcher) Run(ctx context.Context, apply func(Change) error) {
	defer close(w.ended)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		var answer chan error
		select {
		case <-ctx.Done():
			return
		case answer = <-w.asked:
			w.last = w.stat()
		case <-w.kick:
			w.last = w.stat()
		case <-tick.C:
			now := w.stat()
			if now == w.last {
				continue
			}
			settled, ok := w.settle(ctx, now)
			if !ok {
				return
			}
			if settled == w.last {
				continue // replaced and put back, or a gap while it was renamed
			}
			w.last = settled
		}
		var c Change
		if c.Config, c.Warnings, c.Err = w.load(); c.Err == nil {
			w.last.texts = c.Config.stamp.texts // which may be other files now
		}
		err := apply(c)
		if answer != nil {
			answer <- err
		}
	}
}

// settle waits until the file has stopped changing. It reports false when ctx ended first.
func (w *Watcher) settle(ctx context.Context, s stamp) (stamp, bool) {
	timer := time.NewTimer(settleFor)
	defer timer.Stop()
	for waited := settleFor; ; waited += settleFor {
		select {
		case <-ctx.Done():
			return s, false
		case <-timer.C:
		}
		now := w.stat()
		if now == s || waited >= longestWait {
			return now, true
		}
		s = now
		timer.Reset(settleFor)
	}
}

// stamp tells whether a file is still the same; zero = there is none.
type stamp struct {
	path     string
	modified int64 // nanoseconds
	size     int64
	inode    uint64
	texts    uint64 // of the files whose texts were taken in; 0 = none
}

func stampOf(path string, info fs.FileInfo) stamp {
	s := stamp{path: path, modified: info.ModTime().UnixNano(), size: info.Size()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = st.Ino
	}
	return s
}
