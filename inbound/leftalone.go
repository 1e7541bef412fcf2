package inbound

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"understudy/chat"
)

// Why a message that was missed is left alone.
const (
	aloneTooOld  = "too_old"
	aloneTooMany = "too_many_after_a_gap"
)

// textAway is said once in a conversation whose messages are too old to be answered: who is not answered
// should not have to guess why (spec/chat.md §7.8).
const textAway = "⚠️ I was away when this was written and have not answered it. Please send it again if it still matters."

// Bounds of the memory of what is left alone.
const (
	aloneWait = 5 * time.Second // what is left alone meanwhile is one log line
	awayAgain = time.Hour       // before textAway is said again in a conversation
	mostAway  = 4096            // conversations
)

// leftAlone counts what is left alone: after a long absence that is one log line for an account, not one
// for each message.
type leftAlone struct {
	log *slog.Logger

	mu   sync.Mutex
	open map[aloneKey]*alone
	told map[string]time.Time // when textAway was said, by conversation
}

type aloneKey struct{ channel, account, reason string }

type alone struct {
	count  int
	oldest time.Duration // age
	timer  *time.Timer
}

func newLeftAlone(log *slog.Logger) *leftAlone {
	return &leftAlone{log: log, open: map[aloneKey]*alone{}, told: map[string]time.Time{}}
}

// add counts a message.
func (l *leftAlone) add(m chat.Inbound, reason string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := aloneKey{m.Address.Channel, m.Address.Account, reason}
	a := l.open[k]
	if a == nil {
		a = &alone{timer: time.AfterFunc(aloneWait, func() { l.say(k) })}
		l.open[k] = a
	}
	a.count++
	a.oldest = max(a.oldest, now.Sub(m.At))
}

// say logs what was counted, once.
func (l *leftAlone) say(k aloneKey) {
	l.mu.Lock()
	a := l.open[k]
	delete(l.open, k)
	l.mu.Unlock()
	if a == nil {
		return
	}
	a.timer.Stop()
	l.log.Info("messages left alone", "channel", k.channel, "account", k.account, "reason", k.reason,
		"count", a.count, "oldest", a.oldest.Round(time.Second))
}

// close logs what is still counted.
func (l *leftAlone) close() {
	l.mu.Lock()
	var all []aloneKey
	for k := range l.open {
		all = append(all, k)
	}
	l.mu.Unlock()
	for _, k := range all {
		l.say(k)
	}
}

// tell reports whether textAway is to be said now in a conversation.
func (l *leftAlone) tell(place string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.told[place]; ok && now.Sub(at) < awayAgain {
		return false
	}
	if len(l.told) >= mostAway {
		clear(l.told)
	}
	l.told[place] = now
	return true
}

// leaveAlone keeps the keys of a message that was missed and is not answered. addressed tells that it was
// for the bot: only then somebody waits.
func (p *Pipeline) leaveAlone(ctx context.Context, m chat.Inbound, reason string, addressed bool, now time.Time) error {
	isNew, err := p.journal.pass(ctx, m, now)
	if err != nil || !isNew || !addressed {
		return err
	}
	p.log.Debug("message left alone", "channel", m.Address.Channel, "reason", reason, "conversation", m.Address.Conversation, "sender", m.Sender.ID)
	p.alone.add(m, reason, now)
	if reason != aloneTooOld || m.Sender.Bot || !p.alone.tell(m.Address.Destination(), now) {
		return nil
	}
	if err := p.deps.Send(ctx, chat.Outbound{To: p.entry(m, false).m.Address, Class: chat.Notice, Markdown: textAway, ReplyTo: m.ID}); err != nil {
		p.log.Warn("notice not sent", "channel", m.Address.Channel, "error", err)
	}
	return nil
}
