package app

import (
	"context"
	"slices"
	"sync"

	"understudy/chat"
	"understudy/reply"
)

// TurnEvent is what a listening caller is told while a turn runs.
type TurnEvent struct {
	// Type is text (a piece of what the model says), restart (what was said so far is void), notice,
	// answer or failed (the whole text, once).
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
}

// mostEvents bounds the notices that wait for a slow caller; text is joined while it waits.
const mostEvents = 100

// mostMedia bounds the files that are returned with an answer, in bytes.
const mostMedia = 8 << 20

// turnFeed is the way of a turn to the program that asked for it. A slow reader never holds the turn
// up: what waits is joined, and what a restart makes void is not told at all.
type turnFeed struct {
	wake chan struct{} // something waits

	mu     sync.Mutex
	events []TurnEvent
	told   bool // text was taken since the last restart
	files  []chat.Attachment
}

var _ reply.Delivery = (*turnFeed)(nil)

func newTurnFeed() *turnFeed { return &turnFeed{wake: make(chan struct{}, 1)} }

// take removes what waits.
func (f *turnFeed) take() []TurnEvent {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = nil
	for _, e := range events {
		f.told = e.Type == "text" || f.told && e.Type != "restart"
	}
	return events
}

// media returns the files of the answer; those that are too large come without their content.
func (f *turnFeed) media() []chat.Attachment {
	f.mu.Lock()
	defer f.mu.Unlock()
	list, size := slices.Clone(f.files), 0
	for i := range list {
		list[i].Size = int64(len(list[i].Data))
		if size += len(list[i].Data); size > mostMedia {
			list[i].Data = nil
		}
	}
	return list
}

// add queues an event with mu held.
func (f *turnFeed) add(e TurnEvent) {
	if last := len(f.events) - 1; last >= 0 && e.Type == "text" && f.events[last].Type == "text" {
		f.events[last].Text += e.Text
	} else if len(f.events) < mostEvents || e.Type != "notice" {
		f.events = append(f.events, e)
	}
	select {
	case f.wake <- struct{}{}:
	default: // it is awake already
	}
}

// Stream implements reply.Delivery.
func (f *turnFeed) Stream(text string) {
	if text == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(TurnEvent{Type: "text", Text: text})
}

// Committed implements reply.Delivery: all text can be taken back by a restart.
func (f *turnFeed) Committed() bool { return false }

// Restart implements reply.Delivery.
func (f *turnFeed) Restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = slices.DeleteFunc(f.events, func(e TurnEvent) bool { return e.Type == "text" || e.Type == "restart" })
	if f.told {
		f.add(TurnEvent{Type: "restart"})
	}
}

// Notify implements reply.Delivery.
func (f *turnFeed) Notify(o chat.Outbound) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(TurnEvent{Type: "notice", Text: o.Markdown})
}

// Finish implements reply.Delivery. The transcript is what makes an answer durable.
func (f *turnFeed) Finish(_ context.Context, o chat.Outbound) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files = o.Media
	kind := "answer"
	if o.Class == chat.Error {
		kind = "failed"
	}
	f.add(TurnEvent{Type: kind, Text: o.Markdown})
	return nil
}

// Cancel implements reply.Delivery.
func (f *turnFeed) Cancel() {}
