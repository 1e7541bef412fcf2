package console

import (
	"context"

	"understudy/channels"
)

// backlog is how many events a terminal may be behind.
const backlog = 1024

// local is a Link within the process.
type local struct {
	adapter      *Adapter
	conversation string
	events       chan Event

	err    error // guarded by the adapter's lock, like closed
	closed bool
}

// Say implements Link.
func (l *local) Say(ctx context.Context, id, text string) error {
	return l.adapter.accept(ctx, l.conversation, id, text)
}

// Events implements Link.
func (l *local) Events() <-chan Event { return l.events }

// Err implements Link.
func (l *local) Err() error {
	l.adapter.mu.Lock()
	defer l.adapter.mu.Unlock()
	return l.err
}

// Commands implements Link.
func (l *local) Commands(context.Context) ([]channels.CommandInfo, error) {
	l.adapter.mu.Lock()
	defer l.adapter.mu.Unlock()
	return l.adapter.commands, nil
}

// Close implements Link.
func (l *local) Close() error {
	l.adapter.mu.Lock()
	defer l.adapter.mu.Unlock()
	l.end(nil)
	l.adapter.detach(l)
	return nil
}

// end closes the stream of events; the adapter's lock is held.
func (l *local) end(err error) {
	if l.closed {
		return
	}
	l.closed, l.err = true, err
	close(l.events)
}
