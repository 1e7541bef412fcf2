package inbound

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"understudy/chat"
	"understudy/inbound/internal/inbounddb"
)

// ErrClosed tells that a message needs no turn (any more): it is done, failed, dead or forgotten.
var ErrClosed = errors.New("the message is not open in the journal")

// errUnreadable tells that a row does not hold a message.
var errUnreadable = errors.New("the payload is not a message")

// Message is what a Handler gets: a message that is in the journal and is to be answered. It may be
// made of several, which are answered as one: In is the newest of them with the texts and files of all.
type Message struct {
	Seq      int64 // its number in the journal
	In       chat.Inbound
	Owner    bool // its sender may use the owner's commands
	Attempts int  // how many turns were begun for it before
	// Interrupted tells that an earlier process began to answer and said nothing of it.
	Interrupted bool
	// Directed tells that what it says to the bot itself is done (Pipeline.Directed).
	Directed bool
	// Merged are the numbers of the other messages in it. Dispatched, Done and Failed treat all alike.
	Merged []int64
	// History is what was said in the group since the bot last answered there, oldest first. Nobody
	// else gets it again.
	History []HistoryLine
}

// Handler takes admitted messages: it queues a command or a turn and returns. The turn calls
// Dispatched when it begins and Done or Failed when it ends.
type Handler interface {
	// Handle must not wait for the turn. ctx is not cancelled when the adapter stops.
	Handle(ctx context.Context, m Message)
}

// Withdrawer is a Handler that is told when a message which it has queued was deleted by its author:
// there will be no turn for it, and Dispatched says so too.
type Withdrawer interface {
	Withdraw(seq int64)
}

// Dispatched tells that a turn begins for a message, and returns the message as it is now: an edit
// may have changed it while it was queued. ErrClosed tells that it needs no turn.
func (p *Pipeline) Dispatched(ctx context.Context, seq int64) (Message, error) {
	var rows []inbounddb.Row
	err := write(ctx, p.journal.db, func(q *inbounddb.Queries) error {
		open, err := q.Dispatch(ctx, seq)
		if err != nil {
			return err
		}
		if !open {
			return ErrClosed
		}
		rows, err = q.Group(ctx, seq, inbounddb.Dispatched)
		return err
	})
	if err != nil {
		return Message{}, fmt.Errorf("message %d: %w", seq, err)
	}
	for i := range rows {
		rows[i].Attempts-- // this one is not "before"
	}
	return p.message(ctx, rows)
}

// message makes the Message of a group of rows.
func (p *Pipeline) message(ctx context.Context, rows []inbounddb.Row) (Message, error) {
	m, err := unpack(rows)
	if err != nil {
		return m, err
	}
	s, err := p.standing(ctx, m.In)
	m.Owner = isOwner(m.In, s)
	return m, err
}

// unpack reads the Message of a group of rows, all but its Owner.
func unpack(rows []inbounddb.Row) (Message, error) {
	m := Message{Seq: rows[0].Group()}
	var parts []chat.Inbound
	for _, row := range rows {
		var in chat.Inbound
		if err := json.Unmarshal([]byte(row.Payload), &in); err != nil {
			return m, fmt.Errorf("%w: %w", errUnreadable, err)
		}
		if row.ID != m.Seq {
			m.Merged = append(m.Merged, row.ID)
		}
		m.Directed = m.Directed || row.Directed
		parts, m.History, m.Attempts = append(parts, in), append(m.History, readHistory(row.History)...), max(m.Attempts, row.Attempts)
	}
	m.In, m.Interrupted = merge(parts), m.Attempts > 0
	return m, nil
}

// merge makes one message of several, in order of arrival: the newest one with the texts and files of
// all.
func merge(parts []chat.Inbound) chat.Inbound {
	m := parts[len(parts)-1]
	if len(parts) == 1 {
		return m
	}
	var texts []string
	m.Attachments, m.Batched = nil, true
	for _, x := range parts {
		if x.Text != "" {
			texts = append(texts, x.Text)
		}
		m.Attachments = append(m.Attachments, x.Attachments...)
		m.Mentioned = m.Mentioned || x.Mentioned
		m.MentionsOthers = m.MentionsOthers || x.MentionsOthers
		m.Edited = m.Edited || x.Edited
	}
	for i := len(parts) - 1; i >= 0 && m.ReplyTo == ""; i-- {
		m.ReplyTo, m.Quote, m.QuoteFrom = parts[i].ReplyTo, parts[i].Quote, parts[i].QuoteFrom
	}
	if extra := len(m.Attachments) - maxFiles; extra > 0 {
		texts = append(texts, fmt.Sprintf("[… %d more files were left out]", extra))
	}
	m.Text = strings.Join(texts, "\n")
	return capped(m)
}

// Directed tells that what a message says to the bot itself, such as which model to use, is done, although
// its turn still waits: it is not done again after a restart. It does nothing for a message that is not open.
func (p *Pipeline) Directed(ctx context.Context, seq int64) error {
	if err := p.journal.q.Directed(context.WithoutCancel(ctx), seq); err != nil {
		return fmt.Errorf("message %d: %w", seq, err)
	}
	return nil
}

// Participated tells, before Done, that the turn of a message said something to people: in its thread
// they need not name the bot any more (spec/chat.md §2.7). It does nothing for a message that is not open.
func (p *Pipeline) Participated(ctx context.Context, seq int64) error {
	ctx = context.WithoutCancel(ctx)
	rows, err := p.journal.q.Group(ctx, seq, inbounddb.Dispatched)
	if err != nil {
		return fmt.Errorf("message %d: %w", seq, err)
	}
	if len(rows) == 0 {
		return nil
	}
	m, err := unpack(rows)
	rules := p.rules(m.In.Address)
	if err != nil || rules == nil || !rules.access.ImplicitThread || m.In.Address.Kind == chat.Direct || m.In.Address.Thread == "" {
		return err
	}
	if err := p.journal.q.PutParticipation(ctx, placeOf(m.In.Address), time.Now().UnixMilli()); err != nil {
		return fmt.Errorf("message %d: %w", seq, err)
	}
	return nil
}

// Done tells that a message is answered: its answer is in the outbox, or there is none to give. It
// does nothing for a message that is not open.
func (p *Pipeline) Done(ctx context.Context, seq int64) error {
	if err := p.journal.q.Done(context.WithoutCancel(ctx), seq, time.Now().UnixMilli()); err != nil {
		return fmt.Errorf("message %d: %w", seq, err)
	}
	return nil
}

// Failed tells that a message will not be answered; why is for the operator. It does nothing for a
// message that is not open.
func (p *Pipeline) Failed(ctx context.Context, seq int64, why error) error {
	return p.journal.fail(ctx, seq, why.Error())
}

// turnPrefix begins the ids of the turns that answer messages of the journal.
const turnPrefix = "in-"

// TurnID returns the id of the turn that answers a message. It is the same after a restart, so that
// nothing is said twice.
func TurnID(seq int64) string { return turnPrefix + strconv.FormatInt(seq, 10) }

// turnSeq is the inverse of TurnID.
func turnSeq(turnID string) (int64, bool) {
	tail, ok := strings.CutPrefix(turnID, turnPrefix)
	if !ok {
		return 0, false
	}
	seq, err := strconv.ParseInt(tail, 10, 64)
	return seq, err == nil
}
