package channelstest

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// Menus is a channels.Menus in memory, for the Deps of an adapter under test.
type Menus struct {
	mu    sync.Mutex
	known map[string]channels.Menu
}

// NewMenus returns an empty one.
func NewMenus() *Menus { return &Menus{known: map[string]channels.Menu{}} }

// Put implements channels.Menus.
func (m *Menus) Put(_ context.Context, menu channels.Menu) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	token := rand.Text()
	m.known[token] = menu
	return token, nil
}

// Get implements channels.Menus.
func (m *Menus) Get(_ context.Context, token string) (channels.Menu, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	menu, ok := m.known[token]
	if !ok || !time.Now().Before(menu.Until) {
		return channels.Menu{}, channels.ErrExpired
	}
	return menu, nil
}

// Marks is a channels.Seen in memory. A Recorder keeps it.
type Marks struct {
	mu    sync.Mutex
	known map[string]channels.Mark
}

// NewMarks returns an empty one.
func NewMarks() *Marks { return &Marks{known: map[string]channels.Mark{}} }

// Marks implements channels.Seen.
func (m *Marks) Marks(_ context.Context, since time.Time, most int) ([]channels.Mark, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []channels.Mark
	for _, mark := range m.known {
		if !mark.At.Before(since) {
			out = append(out, mark)
		}
	}
	slices.SortFunc(out, func(a, b channels.Mark) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Address.Destination(), b.Address.Destination()))
	})
	return out[:min(most, len(out))], nil
}

// saw notes an accepted message. Edits and deletions are no news about how far was read.
func (m *Marks) saw(in chat.Inbound) {
	if in.Edited || in.Deleted {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[in.Address.Destination()] = channels.Mark{Address: in.Address, Space: in.Space, LastID: in.ID, At: in.At}
}
