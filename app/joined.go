package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"understudy/inbound"
)

// joined remembers, over restarts, which messages are answered by the turn of another one: after a
// crash they count as answered if that turn does. It holds messages whose turn goes on, so it is small.
type joined struct {
	busy   chan struct{} // holds a token while nobody writes
	cursor *inbound.Cursor
	leads  map[string]string // turn of a message → turn that answers it
}

// The place among the cursors.
const (
	joinedCursors = "turns"
	joinedCursor  = "joined"
)

// openJoined reads what an earlier process left.
func (a *App) openJoined(ctx context.Context) (*joined, error) {
	c, err := inbound.OpenCursor(ctx, a.db, joinedCursors, "", joinedCursor)
	if err != nil {
		return nil, err
	}
	x := &joined{busy: make(chan struct{}, 1), cursor: c, leads: map[string]string{}}
	text, err := c.Value(ctx)
	if err != nil {
		return nil, err
	}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &x.leads); err != nil {
			return nil, fmt.Errorf("the list of joined turns: %w", err)
		}
	}
	x.busy <- struct{}{}
	return x, nil
}

// change changes the list and stores it; on an error it stays as it was.
func (x *joined) change(ctx context.Context, f func(leads map[string]string)) error {
	<-x.busy
	defer func() { x.busy <- struct{}{} }()
	next := maps.Clone(x.leads)
	f(next)
	if maps.Equal(next, x.leads) {
		return nil
	}
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("the list of joined turns: %w", err)
	}
	if err := x.cursor.SetValue(context.WithoutCancel(ctx), string(text)); err != nil {
		return err
	}
	x.leads = next
	return nil
}

// join notes that turns are answered by lead.
func (x *joined) join(ctx context.Context, lead string, turns ...string) error {
	return x.change(ctx, func(leads map[string]string) {
		for _, t := range turns {
			leads[t] = lead
		}
	})
}

// part notes that turns stand for themselves, or have ended.
func (x *joined) part(ctx context.Context, turns ...string) error {
	return x.change(ctx, func(leads map[string]string) {
		maps.DeleteFunc(leads, func(turn, _ string) bool { return slices.Contains(turns, turn) })
	})
}

// lead returns the turn that answers a message.
func (x *joined) lead(turn string) string {
	<-x.busy
	defer func() { x.busy <- struct{}{} }()
	if lead, ok := x.leads[turn]; ok {
		return lead
	}
	return turn
}

// settle forgets what a restart has parted: where the turn said nothing, each message is answered again,
// perhaps by another one. It is called before anything is answered.
func (x *joined) settle(ctx context.Context, answered func(turn string) (bool, error)) error {
	<-x.busy
	leads := slices.Sorted(maps.Values(x.leads))
	x.busy <- struct{}{}
	silent := map[string]bool{}
	for _, lead := range slices.Compact(leads) {
		was, err := answered(lead)
		if err != nil {
			return err
		}
		silent[lead] = !was
	}
	return x.change(ctx, func(leads map[string]string) {
		maps.DeleteFunc(leads, func(_, lead string) bool { return silent[lead] })
	})
}
