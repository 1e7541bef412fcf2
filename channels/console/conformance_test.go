package console

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"understudy/channels/channelstest"
	"understudy/chat"
)

func TestConformance(t *testing.T) {
	channelstest.Run(t, func(t *testing.T) *channelstest.Subject {
		s := subject(t, "")
		s.Second = func(t *testing.T) *channelstest.Subject { return subject(t, AccountWhole) }
		return s
	})
}

func subject(t *testing.T, account string) *channelstest.Subject {
	a, err := New(account)
	if err != nil {
		t.Fatal(err)
	}
	link, err := a.Attach("main")
	if err != nil {
		t.Fatal(err)
	}
	s := &seat{link: link}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return &channelstest.Subject{
		Adapter: a, Platform: s, Close: func() {}, Person: Owner, Local: true,
		Direct: chat.Address{Channel: Channel, Account: account, Conversation: "main", Kind: chat.Direct},
	}
}

// seat is a person at a terminal who says again what could not be stored.
type seat struct {
	link   Link
	ctx    context.Context
	cancel func()
	work   sync.WaitGroup

	mu     sync.Mutex
	serial int
	said   []channelstest.Said
	offers map[string][]chat.Button
}

func (*seat) Name() string { return "" }

func (s *seat) Close() {
	s.cancel()
	s.work.Wait()
	_ = s.link.Close()
}

func (s *seat) Say(_ string, _ chat.Address, text, _ string) string {
	s.mu.Lock()
	s.serial++
	id := fmt.Sprint("t", s.serial)
	s.said = append(s.said, channelstest.Said{ID: id, Text: text})
	s.mu.Unlock()
	if s.link.Say(s.ctx, id, text) == nil {
		return id
	}
	s.work.Go(func() {
		for {
			select {
			case <-time.After(time.Second):
			case <-s.ctx.Done():
				return
			}
			if s.link.Say(s.ctx, id, text) == nil {
				return
			}
		}
	})
	return id
}

// Transcript reads what the terminal was told so far.
func (s *seat) Transcript(chat.Address) []channelstest.Said {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		select {
		case e, open := <-s.link.Events():
			if !open {
				return slices.Clone(s.said)
			}
			s.event(e)
			continue
		default:
			return slices.Clone(s.said)
		}
	}
}

func (s *seat) event(e Event) {
	i := slices.IndexFunc(s.said, func(m channelstest.Said) bool { return m.ID == e.ID })
	switch {
	case e.Type == Sent:
		s.said = append(s.said, channelstest.Said{ID: e.ID, Text: e.Text, ByBot: true})
	case i >= 0 && e.Type == Changed:
		s.said[i].Text = e.Text
	case i >= 0 && e.Type == Deleted:
		s.said = slices.Delete(s.said, i, i+1)
	}
	if len(e.Choices) > 0 {
		if s.offers == nil {
			s.offers = map[string][]chat.Button{}
		}
		s.offers[e.ID] = e.Choices
	}
}

// Press types the command of a choice, as a person reads it off the screen.
func (s *seat) Press(person string, to chat.Address, id, label string) {
	s.Transcript(to)
	for _, c := range s.offers[id] {
		if c.Label == label {
			s.Say(person, to, c.Command, "")
		}
	}
}
