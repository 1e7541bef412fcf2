package inbound

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"understudy/chat"
	"understudy/inbound/internal/inbounddb"
	"understudy/internal/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Bounds of the journal (spec/chat.md §1.6, §7.8).
const (
	keepFor   = 7 * 24 * time.Hour
	deadAfter = 1 + maxContinuations // begun turns after which a message that fails is dead
	maxReason = 500                  // bytes of a stored reason
)

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

// entry is a message that is to be answered, with all that is stored together with it.
type entry struct {
	m       chat.Inbound
	from    chat.Address // where it was written; m.Address is where it is answered
	lead    int64        // the group that it may join, 0 = none
	history bool         // it takes what was overheard before it
	news    bool         // what is changed in it later is context
}

// added is what became of an entry.
type added struct {
	seq     int64 // 0 = the message was known
	lead    int64 // the group that it joined, 0 = none
	history []HistoryLine
}

// add stores a new message with its keys. When one of the keys is known, the other ones become known
// too and nothing else is stored, except for a message that was overheard and now turns out to be for
// the bot.
func (j *journal) add(ctx context.Context, e entry, now time.Time) (added, error) {
	payload, err := json.Marshal(e.m)
	if err != nil {
		return added{}, fmt.Errorf("encoding a message: %w", err)
	}
	var out added
	err = write(ctx, j.db, func(q *inbounddb.Queries) error {
		isNew, err := q.PutKeys(ctx, eventKeys(e.m), now.UnixMilli())
		if err == nil && !isNew && e.m.Mentioned {
			isNew, err = wasOverheard(ctx, q, e)
		}
		if err != nil || !isNew {
			return err
		}
		var history string
		if e.history {
			if history, out.history, err = takeHistory(ctx, q, e.from); err != nil {
				return err
			}
		}
		out.seq, out.lead, err = q.Insert(ctx, inbounddb.Row{
			EventKey: e.m.EventKey, Channel: e.m.Address.Channel, Account: e.m.Address.Account, Conversation: e.m.Address.Conversation,
			MessageID: e.m.ID, Payload: string(payload), ReceivedAt: now.UnixMilli(), Lead: e.lead, History: history,
			Thread: e.m.Address.Thread, Sender: e.m.Sender.ID, Said: e.said(),
		})
		if err != nil {
			return err
		}
		return e.leaveMarks(ctx, q, now)
	})
	if err != nil {
		return added{}, err
	}
	return out, nil
}

// wasOverheard takes a message back that was overheard although it is for the bot: one platform sends
// two events for a message, and only the second one may say so.
func wasOverheard(ctx context.Context, q *inbounddb.Queries, e entry) (bool, error) {
	was, err := q.ClaimKeys(ctx, eventKeys(e.m))
	if err != nil || !was {
		return false, err
	}
	_, err = q.DropLine(ctx, placeOf(e.from), e.m.ID)
	return true, err
}

// leaveMarks notes how far the places of a message have been seen, and that the bot is active there.
func (e entry) leaveMarks(ctx context.Context, q *inbounddb.Queries, now time.Time) error {
	if e.m.Sender.Local {
		return nil // nothing is missed there
	}
	if err := q.PutMark(ctx, markOf(e.m, e.from, now)); err != nil {
		return err
	}
	if e.m.Address == e.from {
		return nil
	}
	return q.PutMark(ctx, markOf(e.m, e.m.Address, now))
}

// remember keeps the keys of an event of which nothing else is kept.
func (j *journal) remember(ctx context.Context, keys []string, now time.Time) error {
	_, err := j.q.PutKeys(ctx, keys, now.UnixMilli())
	return err
}

// pass keeps the keys of a message that was accepted and is left alone, and how far it came. It reports
// whether the message is new.
func (j *journal) pass(ctx context.Context, m chat.Inbound, now time.Time) (isNew bool, err error) {
	err = write(ctx, j.db, func(q *inbounddb.Queries) error {
		isNew, err = q.PutKeys(ctx, eventKeys(m), now.UnixMilli())
		if err != nil || !isNew {
			return err
		}
		return q.PutMark(ctx, markOf(m, writtenAt(m), time.Time{}))
	})
	return isNew, err
}

// overhear keeps a message that is not for the bot, among the newest of its place.
func (j *journal) overhear(ctx context.Context, m chat.Inbound, limit int, now time.Time) error {
	place := placeOf(writtenAt(m))
	line, worth := lineOf(m)
	return write(ctx, j.db, func(q *inbounddb.Queries) error {
		isNew, err := q.OverhearKeys(ctx, eventKeys(m), now.UnixMilli())
		if err != nil || !isNew {
			return err
		}
		if worth && limit > 0 {
			if err := q.PutLine(ctx, place, line); err != nil {
				return err
			}
			if err := q.TrimLines(ctx, place, limit); err != nil {
				return err
			}
		}
		return q.PutMark(ctx, markOf(m, writtenAt(m), time.Time{}))
	})
}

// withdraw removes a message that is deleted, unless a turn has begun for it. It returns the number of
// the message to be answered that is gone with it, 0 = none.
func (j *journal) withdraw(ctx context.Context, m chat.Inbound, now time.Time) (gone int64, err error) {
	err = write(ctx, j.db, func(q *inbounddb.Queries) error {
		gone = 0
		row, err := q.Waiting(ctx, m.Address.Channel, m.Address.Account, m.Address.Conversation, m.ID)
		if errors.Is(err, sql.ErrNoRows) {
			_, err = q.DropLine(ctx, placeOf(m.Address), m.ID)
			return err
		}
		if err != nil {
			return err
		}
		if err := giveBack(ctx, q, row); err != nil {
			return err
		}
		last, err := q.Withdraw(ctx, row, now.UnixMilli())
		if last {
			gone = row.Group()
		}
		return err
	})
	return gone, err
}

func (j *journal) fail(ctx context.Context, seq int64, why string) error {
	if len(why) > maxReason {
		why = strings.ToValidUTF8(why[:maxReason], "")
	}
	if err := j.q.Fail(context.WithoutCancel(ctx), seq, why, deadAfter, time.Now().UnixMilli()); err != nil {
		return fmt.Errorf("message %d: %w", seq, err)
	}
	return nil
}

// Prune forgets what is older than seven days, threads and places that were silent for thirty, and
// what expired.
func (p *Pipeline) Prune(ctx context.Context) error {
	now := time.Now()
	before, longBefore := now.Add(-keepFor).UnixMilli(), now.Add(-participatesFor).UnixMilli()
	q := p.journal.q
	return errors.Join(
		q.PruneKeys(ctx, before),
		q.PruneRows(ctx, before),
		q.PruneLines(ctx, before),
		q.PruneMarks(ctx, longBefore),
		q.PruneParticipation(ctx, longBefore),
		q.PruneMenus(ctx, now.UnixMilli()),
		q.PruneRequests(ctx, now.UnixMilli()),
		q.PruneMisses(ctx, before),
	)
}

// maxKeys bounds the keys of one event.
const maxKeys = 8

// eventKeys returns the keys by which an event is known. Those of a new version of a message may be
// the message's own, so only the key of its delivery counts.
func eventKeys(m chat.Inbound) []string {
	keys := []string{m.EventKey}
	if m.Edited {
		return keys
	}
	for _, k := range m.AltKeys {
		if k != "" && len(keys) < maxKeys && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}
