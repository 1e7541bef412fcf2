package telegram

import (
	"context"
	"sync"
)

// Tokens lets one account at a time receive for a bot: two polls end each other, and a poll and a
// webhook do too. All accounts of a process share one, so that neither a second account with the
// same token nor a reload, whose new account starts before the old one has ended, has two polls open.
// A nil *Tokens keeps nobody waiting.
type Tokens struct {
	mu   sync.Mutex
	held map[string]chan struct{} // bot id → closed when it is free
}

// NewTokens returns one of which no bot is taken.
func NewTokens() *Tokens { return &Tokens{held: map[string]chan struct{}{}} }

// acquire waits until nobody receives for a bot; waiting is called once if that is not so now. The
// error is that of ctx.
func (t *Tokens) acquire(ctx context.Context, bot string, waiting func()) (release func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	for {
		t.mu.Lock()
		busy := t.held[bot]
		if busy == nil {
			mine := make(chan struct{})
			t.held[bot] = mine
			t.mu.Unlock()
			return func() { t.release(bot, mine) }, nil
		}
		t.mu.Unlock()
		waiting()
		waiting = func() {}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (t *Tokens) release(bot string, mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held, bot)
	close(mine)
}
