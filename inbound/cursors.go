package inbound

import (
	"context"
	"fmt"
	"strconv"

	"understudy/inbound/internal/inbounddb"
	"understudy/internal/sqlite"
)

// Cursor is a place in a stream of events up to which an adapter has read, kept over restarts. Name
// it after what it belongs to: an offset of one bot means nothing for another.
type Cursor struct {
	q                      *inbounddb.Queries
	channel, account, name string
}

// OpenCursor returns a cursor of a channel account in state/bot.sqlite.
func OpenCursor(ctx context.Context, db *sqlite.DB, channel, account, name string) (*Cursor, error) {
	q, err := openQueries(ctx, db)
	if err != nil {
		return nil, err
	}
	return &Cursor{q, channel, account, name}, nil
}

// Value returns the stored value, "" when there is none.
func (c *Cursor) Value(ctx context.Context) (string, error) {
	v, err := c.q.Cursor(ctx, c.channel, c.account, c.name)
	if err != nil {
		return "", fmt.Errorf("reading cursor %s: %w", c.name, err)
	}
	return v, nil
}

// SetValue stores a value. What the cursor passes must be in the journal already.
func (c *Cursor) SetValue(ctx context.Context, v string) error {
	if err := c.q.SetCursor(ctx, c.channel, c.account, c.name, v); err != nil {
		return fmt.Errorf("storing cursor %s: %w", c.name, err)
	}
	return nil
}

// Load returns the value as a number, 0 when there is none.
func (c *Cursor) Load(ctx context.Context) (int64, error) {
	v, err := c.Value(ctx)
	if err != nil || v == "" {
		return 0, err
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading cursor %s: %w", c.name, err)
	}
	return n, nil
}

// Save stores a number; see SetValue.
func (c *Cursor) Save(ctx context.Context, n int64) error {
	return c.SetValue(ctx, strconv.FormatInt(n, 10))
}
