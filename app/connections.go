package app

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy/channels"
	"understudy/channels/console"
	"understudy/inbound"
)

// connections is the last known state of every channel account.
type connections struct {
	mu      sync.Mutex
	list    map[inbound.Account]channels.Status
	waiters map[inbound.Account]chan struct{} // closed once the account is connected
}

func (c *connections) set(s channels.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list == nil {
		c.list = map[inbound.Account]channels.Status{}
	}
	k := inbound.Account{Channel: s.Channel, Name: s.Account}
	if s.Since.IsZero() {
		s.Since = time.Now()
	}
	if old, ok := c.list[k]; ok && old.State == s.State {
		s.Since = old.Since
	}
	c.list[k] = s
	if w := c.waiters[k]; w != nil && s.State == channels.Connected {
		close(w)
		delete(c.waiters, k)
	}
}

// get returns the state of an account; false = nothing is known of it.
func (c *connections) get(k inbound.Account) (channels.Status, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.list[k]
	return s, ok
}

// forget removes an account that is not configured any more.
func (c *connections) forget(k inbound.Account) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.list, k)
}

// wait returns a channel that is closed once the account is connected.
func (c *connections) wait(k inbound.Account) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiters[k]
	switch {
	case w != nil:
	case c.list[k].State == channels.Connected:
		w = make(chan struct{})
		close(w)
	default:
		w = make(chan struct{})
		if c.waiters == nil {
			c.waiters = map[inbound.Account]chan struct{}{}
		}
		c.waiters[k] = w
	}
	return w
}

// shown returns the states as people should see them, in a fixed order: the terminal is one channel,
// although it has an account of its own for input that is piped.
func (c *connections) shown() []channels.Status {
	return slices.DeleteFunc(c.all(), func(s channels.Status) bool {
		return s.Channel == console.Channel && s.Account == console.AccountWhole
	})
}

// all returns the states, in a fixed order.
func (c *connections) all() []channels.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Collect(maps.Values(c.list))
	slices.SortFunc(out, func(a, b channels.Status) int {
		return strings.Compare(a.Channel+"\x00"+a.Account, b.Channel+"\x00"+b.Account)
	})
	return out
}
