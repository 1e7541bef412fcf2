package inbound

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"understudy/channels"
	"understudy/inbound/internal/inbounddb"
	"understudy/internal/sqlite"
)

// maxMenus bounds the menus that are kept; the oldest go first.
const maxMenus = 5000

// Menus returns the menus of all channels.
func (p *Pipeline) Menus() channels.Menus { return menus{p.journal.db, p.journal.q} }

// menus implements channels.Menus.
type menus struct {
	db *sqlite.DB
	q  *inbounddb.Queries
}

// Put implements channels.Menus. No menu lives longer than channels.MenuLife.
func (s menus) Put(ctx context.Context, m channels.Menu) (string, error) {
	now := time.Now()
	if latest := now.Add(channels.MenuLife); m.Until.IsZero() || m.Until.After(latest) {
		m.Until = latest
	}
	payload, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("encoding a menu: %w", err)
	}
	token := rand.Text()
	err = write(ctx, s.db, func(q *inbounddb.Queries) error {
		if err := q.PruneMenus(ctx, now.UnixMilli()); err != nil {
			return err
		}
		return q.PutMenu(ctx, token, string(payload), m.Until.UnixMilli(), maxMenus)
	})
	if err != nil {
		return "", fmt.Errorf("storing a menu: %w", err)
	}
	return token, nil
}

// Get implements channels.Menus.
func (s menus) Get(ctx context.Context, token string) (channels.Menu, error) {
	var m channels.Menu
	payload, err := s.q.Menu(ctx, token, time.Now().UnixMilli())
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return m, channels.ErrExpired
	case err != nil:
		return m, fmt.Errorf("reading a menu: %w", err)
	}
	if err := json.Unmarshal([]byte(payload), &m); err != nil {
		return m, fmt.Errorf("reading a menu: %w", err)
	}
	return m, nil
}
