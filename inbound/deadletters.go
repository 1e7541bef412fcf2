package inbound

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"understudy/chat"
	"understudy/inbound/internal/inbounddb"
	"understudy/internal/sqlite"
)

// ErrNoDeadLetter tells that there is no message of this number that was given up.
var ErrNoDeadLetter = errors.New("no message of this number was given up")

// Bounds of the list of dead letters.
const (
	maxDead    = 500
	maxPreview = 200 // bytes
)

// DeadLetter is a message that was given up because its turns ended the process again and again. It is
// kept for seven days.
type DeadLetter struct {
	ID           int64
	Account      Account
	Conversation string
	Sender       chat.Sender
	Text         string // how it begins
	Reason       string
	Attempts     int
	ReceivedAt   time.Time
}

// DeadLetters are the messages that were given up. It is for commands that run without the server:
// what they resubmit is answered by the next start.
type DeadLetters struct {
	db *sqlite.DB
	q  *inbounddb.Queries
}

// OpenDeadLetters opens those of state/bot.sqlite.
func OpenDeadLetters(ctx context.Context, db *sqlite.DB) (*DeadLetters, error) {
	q, err := openQueries(ctx, db)
	if err != nil {
		return nil, err
	}
	return &DeadLetters{db, q}, nil
}

// List returns the newest ones, in order of arrival.
func (d *DeadLetters) List(ctx context.Context) ([]DeadLetter, error) {
	rows, err := d.q.AllDead(ctx, maxDead)
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	var out []DeadLetter
	for _, group := range groups(rows) {
		row := group[0]
		l := DeadLetter{
			ID: row.Group(), Account: Account{row.Channel, row.Account}, Conversation: row.Conversation, Reason: row.Reason,
			Attempts: row.Attempts, ReceivedAt: time.UnixMilli(row.ReceivedAt),
		}
		if m, err := unpack(group); err == nil {
			l.Sender, l.Text = m.In.Sender, cutTo(m.In.Text, maxPreview)
		}
		out = append(out, l)
	}
	return out, nil
}

// Resubmit gives a message another try, as a new one: nothing of what was said of it before counts. It
// returns the new number, or ErrNoDeadLetter.
func (d *DeadLetters) Resubmit(ctx context.Context, id int64) (seq int64, err error) {
	err = write(ctx, d.db, func(q *inbounddb.Queries) error {
		rows, err := q.Group(ctx, id, inbounddb.Dead)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return ErrNoDeadLetter
		}
		row, err := renewed(rows)
		if err != nil {
			return err
		}
		if seq, _, err = q.Insert(ctx, row); err != nil {
			return err
		}
		return q.Settle(ctx, id)
	})
	if err != nil {
		return 0, fmt.Errorf("dead letter %d: %w", id, err)
	}
	return seq, nil
}

// renewed makes one row of those of a message that was given up.
func renewed(rows []inbounddb.Row) (inbounddb.Row, error) {
	row := rows[0]
	m, err := unpack(rows)
	if err != nil {
		return row, err
	}
	var lines []storedLine
	for _, r := range rows {
		lines = append(lines, readStored(r.History)...)
	}
	m.In.At = time.Now() // as a new one: its age begins again
	payload, err := json.Marshal(m.In)
	if err != nil {
		return row, err
	}
	if row.History = ""; len(lines) > 0 {
		text, err := json.Marshal(lines)
		if err != nil {
			return row, err
		}
		row.History = string(text)
	}
	row.EventKey = fmt.Sprintf("again:%d:%s", row.Group(), row.EventKey)
	row.Payload, row.ReceivedAt, row.Lead, row.MessageID = string(payload), time.Now().UnixMilli(), 0, m.In.ID
	return row, nil
}

// DeadLetters lists the messages that were given up.
func (p *Pipeline) DeadLetters(ctx context.Context) ([]DeadLetter, error) { return p.dead().List(ctx) }

// Resubmit gives a message that was given up another try, now. It returns the message's new number, or
// ErrNoDeadLetter.
func (p *Pipeline) Resubmit(ctx context.Context, id int64) (int64, error) {
	if !p.recovered.Load() {
		return 0, ErrNotRecovered
	}
	seq, err := p.dead().Resubmit(ctx, id)
	if err != nil {
		return 0, err
	}
	return seq, p.hand(ctx, seq)
}

func (p *Pipeline) dead() *DeadLetters { return &DeadLetters{p.journal.db, p.journal.q} }
