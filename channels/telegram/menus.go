package telegram

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"understudy/channels"
)

const mostMenus = 1024

// memoryMenus is a bounded channels.Menus that forgets everything with the process.
type memoryMenus struct {
	mu    sync.Mutex
	known map[string]channels.Menu
	order []string // tokens, oldest first
}

func newMemoryMenus() *memoryMenus { return &memoryMenus{known: map[string]channels.Menu{}} }

// Put implements channels.Menus.
func (m *memoryMenus) Put(_ context.Context, menu channels.Menu) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for len(m.order) > 0 && (len(m.order) >= mostMenus || !now.Before(m.known[m.order[0]].Until)) {
		delete(m.known, m.order[0])
		m.order = m.order[1:]
	}
	token := rand.Text()
	m.known[token] = menu
	m.order = append(m.order, token)
	return token, nil
}

// Get implements channels.Menus.
func (m *memoryMenus) Get(_ context.Context, token string) (channels.Menu, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	menu, ok := m.known[token]
	if !ok || !time.Now().Before(menu.Until) {
		return channels.Menu{}, channels.ErrExpired
	}
	return menu, nil
}
