package slack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Notes keeps a line of text over restarts.
type Notes interface {
	Load(ctx context.Context) (string, error) // "" = nothing stored
	Save(ctx context.Context, text string) error
}

// mostRoots bounds how many assistant threads of an account are remembered, the latest ones.
const mostRoots = 500

// roots are the threads of the assistant view: each is a conversation of its own (spec/chat.md §1.1).
// Slack tells of a root once, so it is stored before the event is acknowledged.
type roots struct {
	notes Notes // nil = remembered until the process ends

	mu     sync.Mutex
	loaded bool
	list   []string // "<conversation>/<thread>", the oldest first
}

func rootKey(conversation, thread string) string { return conversation + "/" + thread }

// add remembers a root; an error means that it is not stored.
func (r *roots) add(ctx context.Context, conversation, thread string) error {
	if conversation == "" || thread == "" || strings.ContainsAny(conversation+thread, " /") {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return err
	}
	if slices.Contains(r.list, rootKey(conversation, thread)) {
		return nil
	}
	list := append(slices.Clone(r.list), rootKey(conversation, thread))
	list = list[max(0, len(list)-mostRoots):]
	if r.notes != nil {
		if err := r.notes.Save(ctx, strings.Join(list, " ")); err != nil {
			return fmt.Errorf("an assistant thread is not stored: %w", err)
		}
	}
	r.list = list
	return nil
}

// has reports whether a thread is one of the assistant view.
func (r *roots) has(ctx context.Context, conversation, thread string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return false, err
	}
	return slices.Contains(r.list, rootKey(conversation, thread)), nil
}

// load reads what an earlier process stored; r.mu is held.
func (r *roots) load(ctx context.Context) error {
	if r.loaded || r.notes == nil {
		return nil
	}
	text, err := r.notes.Load(ctx)
	if err != nil {
		return fmt.Errorf("assistant threads are not readable: %w", err)
	}
	r.list, r.loaded = strings.Fields(text), true
	return nil
}
