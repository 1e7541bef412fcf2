package inbound

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// What a person is told who waits for an interaction that is refused (spec/chat.md §3.2).
const (
	textNotAuthorised = "You are not authorized to use this command here."
	textWrongChannel  = "This channel is not allowed."
)

// Accept implements channels.Sink: it returns nil once the event is in the journal, or is known or
// refused; a refused interaction returns a *channels.Refusal. Of a refused event only the key is kept.
func (p *Pipeline) Accept(ctx context.Context, m chat.Inbound) error {
	if !p.recovered.Load() {
		return ErrNotRecovered
	}
	now := time.Now()
	if m.At.IsZero() || m.At.After(now) {
		m.At = now
	}
	var err error
	switch {
	case m.Deleted:
		err = p.withdraw(ctx, m, now)
	case m.EventKey == "":
		p.log.Error("event without a key", "channel", m.Address.Channel)
	default:
		err = p.unlessKnown(ctx, capped(m), now)
	}
	var refusal *channels.Refusal
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	if ctx.Err() == nil {
		p.unstored.Store(&unstored{now, err})
	}
	return fmt.Errorf("accepting an event of %s: %w", m.Address.Channel, err)
}

// unstored is an event that could not be stored.
type unstored struct {
	at  time.Time
	why error
}

// Unstored returns when an event could last not be stored, and why; the error is nil when one was stored
// since then. It is for readiness: what is not stored waits at its platform, and nobody here sees it.
func (p *Pipeline) Unstored() (time.Time, error) {
	if u := p.unstored.Load(); u != nil {
		return u.at, u.why
	}
	return time.Time{}, nil
}

// unlessKnown leaves alone what came before. A message that was overheard may come again as one that
// is for the bot.
func (p *Pipeline) unlessKnown(ctx context.Context, m chat.Inbound, now time.Time) error {
	keys := eventKeys(m)
	known, overheard := p.recent.seen(keys, now)
	if !known && m.CatchUp { // what came before the gap must not count as missed
		var err error
		if known, overheard, err = p.journal.q.Known(ctx, keys); err != nil {
			return err
		}
	}
	if known && !(overheard && m.Mentioned) {
		return nil
	}
	overheard, err := p.accept(ctx, m, now)
	var refusal *channels.Refusal
	if err == nil || errors.As(err, &refusal) {
		p.recent.add(keys, now, overheard)
		p.unstored.Store(nil)
	}
	return err
}

// accept decides and stores. It reports whether the message is one that others are to see only as
// context.
func (p *Pipeline) accept(ctx context.Context, m chat.Inbound, now time.Time) (overheard bool, err error) {
	s, err := p.standing(ctx, m)
	if err != nil {
		return false, err
	}
	d := p.rules(m.Address).Decide(m, s)
	switch {
	case d.Verdict == Pair && !m.Edited:
		return false, p.offerPairing(ctx, m, now)
	case d.Verdict != Admit:
		p.log.Debug("message refused", "channel", m.Address.Channel, "reason", string(d.Reason), "conversation", m.Address.Conversation, "sender", m.Sender.ID)
		return false, p.refuse(ctx, m, refusalText(m, d.Reason), now)
	case m.Edited:
		return false, p.journal.edit(ctx, m, p.linesOf(m), now)
	case m.CatchUp && now.Sub(m.At) > p.settings.Load().catchUp(m.Address).MaxAge:
		return false, p.leaveAlone(ctx, m, aloneTooOld, d.Addressed || p.isCommand(m.Text), now)
	}
	command := m.Album == "" && p.isCommand(m.Text)
	if !d.Addressed && !command {
		return p.notAddressed(ctx, m, s, now)
	}
	return false, p.take(ctx, m, s, command, now)
}

// notAddressed keeps a message as context, unless it is a part of an album that waits: people name the
// bot in one part only.
func (p *Pipeline) notAddressed(ctx context.Context, m chat.Inbound, s Standing, now time.Time) (overheard bool, err error) {
	if p.collect.waits(p.part(m, false)) {
		return false, p.take(ctx, m, s, false, now)
	}
	return true, p.journal.overhear(ctx, m, *p.rules(m.Address).access.HistoryLimit, now)
}

// take stores a message that is to be answered, and hands it on if it is new.
func (p *Pipeline) take(ctx context.Context, m chat.Inbound, s Standing, command bool, now time.Time) error {
	if m.CatchUp && !p.gaps.admit(m.Address.Destination(), p.settings.Load().catchUp(m.Address).MaxMessages, now) {
		return p.leaveAlone(ctx, m, aloneTooMany, true, now)
	}
	if ok, text := p.withinPace(ctx, m, now); !ok {
		return p.refuse(ctx, m, text, now)
	}
	x := p.part(m, command)
	e := p.entry(m, command)
	var err error
	if e.lead, err = p.collect.join(ctx, x); err != nil {
		return err
	}
	a, err := p.journal.add(ctx, e, now)
	switch {
	case err != nil || a.seq == 0:
		return err
	case a.lead != 0:
		p.collect.extend(a.lead, x)
	case !p.collect.open(ctx, a.seq, 1, x):
		p.give(ctx, Message{Seq: a.seq, In: e.m, Owner: isOwner(m, s), History: a.history})
	}
	return nil
}

// entry says what is stored of a message that is to be answered. A message that opens a thread belongs
// to it already, and a command leaves the conversation as it is.
func (p *Pipeline) entry(m chat.Inbound, command bool) entry {
	e := entry{m: m, from: writtenAt(m)}
	rules := p.rules(m.Address)
	if rules == nil || command || m.Via != "" || m.Sender.Local {
		return e
	}
	e.history = p.linesOf(m) > 0
	e.news = e.history
	if rules.access.SeedThreads && m.Address.Kind == chat.Room && m.Address.Thread == "" {
		e.m.Address.Thread = m.ID
	}
	return e
}

// linesOf is how many lines of context are kept for the place of a message. In private chats those are only
// of messages that were changed.
func (p *Pipeline) linesOf(m chat.Inbound) int {
	rules := p.rules(m.Address)
	switch {
	case rules == nil || m.Sender.Local:
		return 0
	case m.Address.Kind == chat.Direct:
		return mostEdits
	}
	return *rules.access.HistoryLimit
}

// part says what a message waits for. Commands, interactions and the owner at the machine do not.
func (p *Pipeline) part(m chat.Inbound, command bool) part {
	x := part{place: writtenAt(m).Destination(), sender: m.Sender.ID, album: m.Album, bytes: len(m.Text)}
	switch {
	case command, m.Via != "", m.Sender.Local:
	case m.Album != "":
		x.window = albumWindow
	case len(m.Attachments) == 0:
		x.window = p.settings.Load().Debounce.window(m.Address.Channel)
	}
	return x
}

// refuse keeps the keys of a message that is not answered, and tells the person who waits for its
// interaction why. Ordinary messages are refused in silence.
func (p *Pipeline) refuse(ctx context.Context, m chat.Inbound, text string, now time.Time) error {
	if err := p.journal.remember(ctx, eventKeys(m), now); err != nil {
		return err
	}
	return refusal(m, text)
}

func refusal(m chat.Inbound, text string) error {
	if m.Via == "" {
		return nil
	}
	return &channels.Refusal{Text: text}
}

func refusalText(m chat.Inbound, why Reason) string {
	if m.Address.Kind != chat.Direct && (why == ReasonGroup || why == ReasonDisabled) {
		return textWrongChannel
	}
	return textNotAuthorised
}

// withdraw removes a message that its platform says is deleted, while no turn has begun for it.
func (p *Pipeline) withdraw(ctx context.Context, m chat.Inbound, now time.Time) error {
	if m.ID == "" {
		return nil
	}
	seq, err := p.journal.withdraw(ctx, m, now)
	if err != nil || seq == 0 || p.collect.holds(seq) {
		return err
	}
	if w, ok := p.deps.Handler.(Withdrawer); ok {
		w.Withdraw(seq)
	}
	return nil
}

// offerPairing gives a stranger a code, at most one at a time.
func (p *Pipeline) offerPairing(ctx context.Context, m chat.Inbound, now time.Time) error {
	code, err := p.pairing.request(ctx, m, eventKeys(m), now)
	if err != nil {
		return err
	}
	if code == "" {
		return refusal(m, textNotAuthorised)
	}
	p.log.Info("pairing offered", "channel", m.Address.Channel, "sender", m.Sender.ID)
	err = p.deps.Send(ctx, chat.Outbound{To: m.Address, Class: chat.Command, Markdown: pairingText(m, code), Via: m.Via})
	if err != nil {
		p.log.Warn("pairing code not sent", "channel", m.Address.Channel, "error", err)
		return p.pairing.withdraw(ctx, m)
	}
	return nil
}
