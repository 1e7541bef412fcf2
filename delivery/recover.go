package delivery

import (
	"context"
	"encoding/json"
	"fmt"

	"understudy/channels"
	"understudy/chat"
	"understudy/delivery/internal/outboxdb"
)

// Answer says what the outbox knows of a turn's answer.
type Answer uint8

// The answers.
const (
	AnswerNone    Answer = iota // nothing of it was given to the outbox
	AnswerSent                  // it was sent, will be, or was refused for good: nothing more is to be done
	AnswerUnknown               // it was perhaps sent and is not repeated
)

// AnswerState tells whether a turn has answered, for a start that finds the turn interrupted
// (spec/chat.md §7.8). It is meant for turns that do not run in this process.
func (s *Service) AnswerState(ctx context.Context, turnID string) (Answer, error) {
	rows, err := s.store.q.OfTurn(ctx, turnID)
	if err != nil {
		return AnswerNone, fmt.Errorf("state of turn %s: %w", turnID, err)
	}
	answer := AnswerNone
	for _, r := range rows {
		switch {
		case r.State == stateUnknown,
			r.State == stateClaimed && r.EditID == "" && !s.idempotent(accountKey{r.Channel, r.Account}):
			return AnswerUnknown, nil
		default:
			answer = AnswerSent
		}
	}
	return answer, nil
}

func (s *Service) idempotent(k accountKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[k]
	return a != nil && a.traits.Idempotent
}

// Recover goes on with what an earlier process left in the outbox (spec/chat.md §2.10): what was
// not sent is queued; of what was perhaps sent, the harmless is repeated and Deps.Unknown is told of
// the rest; previews without an answer are taken away. Call it once, after the adapters are
// registered and before new turns begin; Run does the sending.
func (s *Service) Recover(ctx context.Context) error {
	if err := s.recoverClaimed(ctx); err != nil {
		return fmt.Errorf("recovering the outbox: %w", err)
	}
	if err := s.recoverPreviews(ctx); err != nil {
		return fmt.Errorf("recovering previews: %w", err)
	}
	dests, err := s.store.q.PendingDestinations(ctx)
	if err != nil {
		return fmt.Errorf("recovering the outbox: %w", err)
	}
	for _, d := range s.resume(dests) {
		s.log.Warn("messages wait for a channel that is not configured", "channel", d.Channel, "account", d.Account)
	}
	return nil
}

// resume gives destinations with waiting rows their queues; it returns those without an account.
func (s *Service) resume(dests []outboxdb.Destination) (homeless []outboxdb.Destination) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range dests {
		if s.accounts[accountKey{d.Channel, d.Account}] == nil {
			homeless = append(homeless, d)
			continue
		}
		l := s.lines[d.Key]
		if l == nil {
			l = &line{key: d.Key, used: s.began}
			s.lines[d.Key] = l
		}
		l.backlog = true
		s.start(l)
	}
	return homeless
}

func (s *Service) recoverClaimed(ctx context.Context) error {
	rows, err := s.store.q.Claimed(ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		p, err := open(r)
		// The reply to an interaction would be another message: nothing of an interaction outlives a process.
		if err == nil && (r.EditID != "" || p.out.Via == "" && s.idempotent(accountKey{r.Channel, r.Account})) {
			s.stored(s.store.release(ctx, p))
			continue
		}
		if err == nil && p.soundNext() { // it was perhaps heard; what is left goes on
			p.receipts = append(p.receipts, channels.Receipt{})
			s.stored(s.store.progress(ctx, p, false))
			continue
		}
		s.log.Warn("delivery unknown", "channel", r.Channel, "class", r.Kind, "code", "restart", "turn", r.TurnID, "part", len(p.receipts))
		if s.deps.Unknown != nil {
			s.deps.Unknown(ctx, p.out, true)
		}
		if s.deps.Metrics != nil {
			s.deps.Metrics.Failed(chat.Address{Channel: r.Channel, Account: r.Account}, p.out.Class, "restart")
		}
		s.stored(s.store.end(ctx, p, stateUnknown, "restart", s.clock.Now()))
	}
	return nil
}

// recoverPreviews takes away what an interrupted turn showed. A preview whose answer waits in the
// outbox becomes that answer instead.
func (s *Service) recoverPreviews(ctx context.Context) error {
	previews, err := s.store.q.Previews(ctx)
	if err != nil {
		return err
	}
	for _, p := range previews {
		rows, err := s.store.q.OfTurn(ctx, p.TurnID)
		if err != nil {
			return err
		}
		waits := false
		for _, r := range rows {
			waits = waits || r.State == statePending
		}
		if waits {
			continue
		}
		var to chat.Address
		if err := json.Unmarshal([]byte(p.Dest), &to); err != nil {
			s.stored(s.store.dropPreview(ctx, p.TurnID))
			continue
		}
		a, ok := s.account(to)
		if !ok || a.editor == nil {
			s.stored(s.store.dropPreview(ctx, p.TurnID))
			continue
		}
		s.push(to, true, func(ctx context.Context) {
			s.erase(ctx, a, chat.Outbound{To: to, TurnID: p.TurnID}, preview{id: p.MessageID, grows: p.Stream && a.stream != nil})
		})
	}
	return nil
}
