package inbound

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"understudy/chat"
	"understudy/inbound/internal/inbounddb"
	"understudy/internal/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ErrClosed tells that a message needs no turn (any more): it is done, failed, dead or forgotten.
var ErrClosed = errors.New("the message is not open in the journal")

// Bounds of the journal (spec/chat.md §1.6, §7.8).
const (
	keepFor   = 7 * 24 * time.Hour
	deadAfter = 1 + maxContinuations // begun turns after which a message that fails is dead
	maxReason = 500                  // bytes of a stored reason
)

// errUnreadable tells that a row does not hold a message.
var errUnreadable = errors.New("the payload is not a message")

// stateDispatched is the state of a message for which a turn has begun.
const stateDispatched = "dispatched"

func openQueries(ctx context.Context, db *sqlite.DB) (*inbounddb.Queries, error) {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := sqlite.Migrate(ctx, db, "inbound", dir); err != nil {
		return nil, err
	}
	return inbounddb.New(db.Writes(), db.Reads()), nil
}

// journal stores messages.
type journal struct {
	db *sqlite.DB
	q  *inbounddb.Queries
}

// write runs f in one transaction.
func write(ctx context.Context, db *sqlite.DB, f func(*inbounddb.Queries) error) error {
	return db.Write(ctx, func(tx *sqlite.Tx) error { return f(inbounddb.New(tx, tx)) })
}

// add stores a new message with its keys and returns its number, or 0 when one of the keys is
// known: then the other keys become known too.
func (j *journal) add(ctx context.Context, m chat.Inbound, now time.Time) (seq int64, err error) {
	payload, err := json.Marshal(m)
	if err != nil {
		return 0, fmt.Errorf("encoding a message: %w", err)
	}
	err = write(ctx, j.db, func(q *inbounddb.Queries) error {
		isNew, err := putKeys(ctx, q, eventKeys(m), now)
		if err != nil || !isNew {
			return err
		}
		seq, err = q.Insert(ctx, inbounddb.Row{
			EventKey: m.EventKey, Channel: m.Address.Channel, Account: m.Address.Account,
			Conversation: m.Address.Conversation, MessageID: m.ID, Payload: string(payload), ReceivedAt: now.UnixMilli(),
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	return seq, nil
}

// putKeys makes keys known and reports whether all of them are new.
func putKeys(ctx context.Context, q *inbounddb.Queries, keys []string, now time.Time) (bool, error) {
	all := true
	for _, k := range keys {
		isNew, err := q.PutKey(ctx, k, now.UnixMilli())
		if err != nil {
			return false, err
		}
		all = all && isNew
	}
	return all, nil
}

// remember keeps the keys of an event of which nothing else is kept.
func (j *journal) remember(ctx context.Context, keys []string, now time.Time) error {
	return write(ctx, j.db, func(q *inbounddb.Queries) error {
		_, err := putKeys(ctx, q, keys, now)
		return err
	})
}

// edit replaces a message by its new version while no turn has begun for it. Later versions change
// nothing: there is no second answer.
func (j *journal) edit(ctx context.Context, m chat.Inbound, now time.Time) error {
	return write(ctx, j.db, func(q *inbounddb.Queries) error {
		isNew, err := putKeys(ctx, q, eventKeys(m), now)
		if err != nil || !isNew || m.ID == "" {
			return err
		}
		row, err := q.Waiting(ctx, m.Address.Channel, m.Address.Account, m.Address.Conversation, m.ID)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return replace(ctx, q, row, m)
	})
}

func replace(ctx context.Context, q *inbounddb.Queries, row inbounddb.Row, m chat.Inbound) error {
	var old chat.Inbound
	if err := json.Unmarshal([]byte(row.Payload), &old); err != nil {
		return nil // the turn will find out; the event itself is known
	}
	if old.Sender.ID != m.Sender.ID || old.Text == m.Text && len(old.Attachments) == len(m.Attachments) {
		return nil // a link preview or a reaction
	}
	old.Text, old.Attachments, old.Edited = m.Text, m.Attachments, true
	payload, err := json.Marshal(old)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	_, err = q.SetPayload(ctx, row.ID, string(payload))
	return err
}

// Dispatched tells that a turn begins for a message, and returns the message as it is now: an edit
// may have changed it while it was queued. ErrClosed tells that it needs no turn.
func (p *Pipeline) Dispatched(ctx context.Context, seq int64) (Message, error) {
	var row inbounddb.Row
	err := write(ctx, p.journal.db, func(q *inbounddb.Queries) error {
		open, err := q.Dispatch(ctx, seq)
		if err != nil {
			return err
		}
		if !open {
			return ErrClosed
		}
		row, err = q.Get(ctx, seq)
		return err
	})
	if err != nil {
		return Message{}, fmt.Errorf("message %d: %w", seq, err)
	}
	row.Attempts-- // this one is not "before"
	return p.message(ctx, row)
}

// message makes the Message of a row.
func (p *Pipeline) message(ctx context.Context, row inbounddb.Row) (Message, error) {
	m := Message{Seq: row.ID, Attempts: row.Attempts, Interrupted: row.Attempts > 0}
	if err := json.Unmarshal([]byte(row.Payload), &m.In); err != nil {
		return m, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	s, err := p.standing(ctx, m.In)
	m.Owner = p.isOwner(m.In, s)
	return m, err
}

// Done tells that a message is answered: its answer is in the outbox, or there is none to give. It
// does nothing for a message that is not open.
func (p *Pipeline) Done(ctx context.Context, seq int64) error {
	if _, err := p.journal.q.Done(context.WithoutCancel(ctx), seq, time.Now().UnixMilli()); err != nil {
		return fmt.Errorf("message %d: %w", seq, err)
	}
	return nil
}

// Failed tells that a message will not be answered; why is for the operator. It does nothing for a
// message that is not open.
func (p *Pipeline) Failed(ctx context.Context, seq int64, why error) error {
	return p.journal.fail(ctx, seq, why.Error())
}

func (j *journal) fail(ctx context.Context, seq int64, why string) error {
	if len(why) > maxReason {
		why = strings.ToValidUTF8(why[:maxReason], "")
	}
	if _, err := j.q.Fail(context.WithoutCancel(ctx), seq, why, deadAfter, time.Now().UnixMilli()); err != nil {
		return fmt.Errorf("message %d: %w", seq, err)
	}
	return nil
}

// Prune forgets what is older than seven days, and what expired.
func (p *Pipeline) Prune(ctx context.Context) error {
	now := time.Now()
	before := now.Add(-keepFor).UnixMilli()
	q := p.journal.q
	return errors.Join(
		q.PruneKeys(ctx, before),
		q.PruneRows(ctx, before),
		q.PruneRequests(ctx, now.UnixMilli()),
		q.PruneMisses(ctx, before),
	)
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
