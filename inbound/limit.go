package inbound

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"understudy/chat"
)

// Caps of one message and of one sender (spec/chat.md §8, S10).
const (
	maxText     = 64 << 10 // bytes
	maxFiles    = 8
	senderBurst = 20
	senderSpan  = time.Minute
	maxSenders  = 4096
)

// textCut ends a text that was longer than allowed.
const textCut = "\n[… the rest of the message was cut off]"

// capped bounds what a message may bring along.
func capped(m chat.Inbound) chat.Inbound {
	m.Text, m.Quote = cutText(m.Text), cutText(m.Quote)
	if len(m.Attachments) > maxFiles {
		m.Attachments = m.Attachments[:maxFiles:maxFiles]
	}
	return m
}

// cutText bounds a text and makes it valid UTF-8.
func cutText(s string) string {
	if len(s) <= maxText {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return cutTo(s, maxText-len(textCut)) + textCut
}

// cutTo returns at most so many bytes of a text, whole characters and valid UTF-8.
func cutTo(s string, most int) string {
	if len(s) > most {
		for most > 0 && !utf8.RuneStart(s[most]) {
			most--
		}
		s = strings.TrimRight(s[:most], " \n\t")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// textTooFast answers the first message of a sender that is over the limit (spec/chat.md §8, S10).
const textTooFast = "⏳ That was more than 20 messages in a minute. I left out the ones that follow; please send them again a little later."

// withinPace reports whether a sender may write more. A person who may not is told once, and everybody
// who waits for an interaction; nothing is ever said to another bot.
func (p *Pipeline) withinPace(ctx context.Context, m chat.Inbound, now time.Time) (ok bool, text string) {
	sender := m.Address.Channel + "\x00" + m.Address.Account + "\x00" + m.Sender.ID
	reason := "too_fast"
	switch {
	case m.Sender.Local:
		return true, ""
	case m.Sender.Bot:
		ok, reason = p.loops.admit(sender, p.settings.Load().Loops, now), "bot_loop"
	default:
		var tell bool
		ok, tell = p.pace.admit(sender, m.At)
		if tell && m.Via == "" {
			err := p.deps.Send(ctx, chat.Outbound{To: m.Address, Class: chat.Notice, Markdown: textTooFast})
			if err != nil {
				p.log.Warn("notice not sent", "channel", m.Address.Channel, "error", err)
			}
		}
	}
	if !ok {
		p.log.Info("message refused", "channel", m.Address.Channel, "reason", reason)
	}
	return ok, textTooFast
}

// pace counts what each sender wrote within the last minute, by the time of writing: a queue that a
// platform held back is no flood.
type pace struct {
	mu      sync.Mutex
	senders map[string]*burst
}

type burst struct {
	at   [senderBurst]time.Time // a ring of the latest messages
	next int
	told time.Time
}

func newPace() *pace { return &pace{senders: map[string]*burst{}} }

// admit counts a message of a sender. When it is one too many it is not admitted, and tell reports
// whether the sender is to be told now.
func (p *pace) admit(sender string, at time.Time) (ok, tell bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.senders[sender]
	if b == nil {
		p.sweep(at)
		b = &burst{}
		p.senders[sender] = b
	}
	// What was written long before the oldest one came late; it is no flood either.
	if oldest := b.at[b.next]; !oldest.IsZero() && at.Sub(oldest).Abs() < senderSpan {
		if tell = b.told.IsZero() || at.Sub(b.told).Abs() >= senderSpan; tell {
			b.told = at
		}
		return false, tell
	}
	b.at[b.next] = at
	b.next = (b.next + 1) % senderBurst
	return true, false
}

// sweep forgets senders that were silent for the span once there are many, and everybody if that
// is not enough.
func (p *pace) sweep(now time.Time) {
	if len(p.senders) < maxSenders {
		return
	}
	for k, b := range p.senders {
		if last := b.at[(b.next+senderBurst-1)%senderBurst]; now.Sub(last) >= senderSpan {
			delete(p.senders, k)
		}
	}
	if len(p.senders) >= maxSenders {
		clear(p.senders)
	}
}
