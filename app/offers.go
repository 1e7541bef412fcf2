package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/inbound"
)

// offers are the reminders that models have offered, the newest of each place, for as long as their
// buttons work. They outlive a restart.
type offers struct {
	busy   chan struct{} // holds a token while nobody looks at them
	cursor *inbound.Cursor
	known  map[string]offer // by token
}

// offer is a reminder that a person may take.
type offer struct {
	Agent   string       `json:"agent"`
	Session string       `json:"session"`
	To      chat.Address `json:"to"`
	For     string       `json:"for"` // sender id of whoever was promised something
	Turn    string       `json:"turn"`
	ReplyTo string       `json:"replyTo,omitempty"`
	Text    string       `json:"text"`
	When    string       `json:"when"` // means the same whenever it is read
	Zone    string       `json:"zone,omitempty"`
	Until   time.Time    `json:"until"`
	// By is the turn of the press that settled it, and Taken what it was; "" = it is open. It is kept
	// after that so that a second press is recognised.
	By    string `json:"by,omitempty"`
	Taken bool   `json:"taken,omitempty"`
}

// said is the turn that the offer's own message stands under in the outbox.
func (o offer) said() string { return o.Turn + "-offer" }

// here reports whether the offer was made in the conversation of an address.
func (o offer) here(at chat.Address) bool {
	return o.To.Channel == at.Channel && o.To.Account == at.Account && o.To.Conversation == at.Conversation
}

// press is what somebody wants of an offer.
type press struct {
	token string
	take  bool
}

// The words before a token, as the buttons send them.
const (
	wordTake  = "/accept"
	wordLeave = "/decline"
)

const (
	offerToken = 10   // characters; in lower case it is the id of the task too
	mostOffers = 1000 // at a time; beyond that the oldest goes
)

// The place among the cursors.
const (
	offerCursors = "offers"
	offerCursor  = "known"
)

// openOffers reads what an earlier process left.
func (a *App) openOffers(ctx context.Context) (*offers, error) {
	c, err := inbound.OpenCursor(ctx, a.db, offerCursors, "", offerCursor)
	if err != nil {
		return nil, err
	}
	x := &offers{busy: make(chan struct{}, 1), cursor: c, known: map[string]offer{}}
	text, err := c.Value(ctx)
	if err != nil {
		return nil, err
	}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &x.known); err != nil {
			return nil, fmt.Errorf("the list of offers: %w", err)
		}
	}
	x.busy <- struct{}{}
	return x, nil
}

// match recognises what a button below an offer sends.
func (x *offers) match(text string) (press, bool) {
	words := strings.Fields(text)
	if len(words) != 2 || len(words[1]) != offerToken {
		return press{}, false
	}
	switch word, _, _ := strings.Cut(strings.ToLower(words[0]), "@"); word {
	case wordTake:
		return press{strings.ToUpper(words[1]), true}, true
	case wordLeave:
		return press{strings.ToUpper(words[1]), false}, true
	}
	return press{}, false
}

// hold waits until nobody else looks at the offers. What is decided about one is decided before the
// next press is looked at.
func (x *offers) hold() (release func()) {
	<-x.busy
	return func() { x.busy <- struct{}{} }
}

// add keeps an offer in place of the one that stood there, and returns its token.
func (x *offers) add(ctx context.Context, o offer, now time.Time) (token string, err error) {
	defer x.hold()()
	token = rand.Text()[:offerToken]
	next := maps.Clone(x.known)
	maps.DeleteFunc(next, func(_ string, old offer) bool {
		return !now.Before(old.Until) || old.To.Destination() == o.To.Destination()
	})
	for len(next) >= mostOffers {
		oldest := ""
		for t, old := range next {
			if oldest == "" || old.Until.Before(next[oldest].Until) {
				oldest = t
			}
		}
		delete(next, oldest)
	}
	o.Until = now.Add(channels.MenuLife)
	next[token] = o
	return token, x.store(ctx, next)
}

// put changes a known offer; it is held.
func (x *offers) put(ctx context.Context, token string, o offer) error {
	next := maps.Clone(x.known)
	next[token] = o
	return x.store(ctx, next)
}

// store writes the offers down; on an error they stay as they were. They are held.
func (x *offers) store(ctx context.Context, next map[string]offer) error {
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("the list of offers: %w", err)
	}
	if err := x.cursor.SetValue(context.WithoutCancel(ctx), string(text)); err != nil {
		return err
	}
	x.known = next
	return nil
}
