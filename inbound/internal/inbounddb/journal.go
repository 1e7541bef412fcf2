// Package inbounddb holds the statements of the journal and of what belongs to it: pairing, cursors,
// marks, overheard messages and menus (spec/chat.md §10).
package inbounddb

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// DB is what statements run on: a *sql.DB or a *sql.Tx.
type DB interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Queries runs the statements, writes on one handle and reads on another.
type Queries struct{ w, r DB }

// New returns the statements over a writer and a reader.
func New(w, r DB) *Queries { return &Queries{w, r} }

// State is the state of a row.
type State string

// The states that rows are looked for by.
const (
	Received   State = "received"
	Dispatched State = "dispatched" // a turn has begun
	Dead       State = "dead"
)

// Row is one line of the journal. Times are integer milliseconds.
type Row struct {
	ID           int64
	EventKey     string
	Channel      string
	Account      string
	Conversation string
	MessageID    string
	State        State
	Attempts     int
	Payload      string
	ReceivedAt   int64
	Lead         int64  // the first row of those that are answered as one; 0 = this one
	History      string // JSON
	Reason       string // why it ended badly
	Directed     bool   // what it says to the bot itself is done
	Thread       string // where it is answered
	Sender       string
	Said         int64 // the fingerprint of its text; 0 = its edits are no news
}

// Group returns the number of the rows that are answered as one.
func (r *Row) Group() int64 {
	if r.Lead != 0 {
		return r.Lead
	}
	return r.ID
}

const rowColumns = `id, event_key, channel, account, conversation, message_id, state, attempts, payload_json, received_at, lead, history_json, error, directed, thread, sender, said`

// groupOf is the condition that a row belongs to group ?1. The second part lets the partial index be
// used.
const groupOf = `(id = ?1 OR (lead = ?1 AND lead != 0))`

func (r *Row) fields() []any {
	return []any{
		&r.ID, &r.EventKey, &r.Channel, &r.Account, &r.Conversation, &r.MessageID, &r.State, &r.Attempts, &r.Payload,
		&r.ReceivedAt, &r.Lead, &r.History, &r.Reason, &r.Directed, &r.Thread, &r.Sender, &r.Said,
	}
}

// Insert adds a received row and returns its id and its group: r.Lead, or 0 when no turn can answer
// the row together with that one any more.
func (q *Queries) Insert(ctx context.Context, r Row) (id, lead int64, err error) {
	err = q.w.QueryRowContext(ctx, `INSERT INTO inbound (lead, event_key, channel, account, conversation, message_id, payload_json, received_at, history_json, thread, sender, said)
		VALUES (iif(?1 != 0 AND EXISTS (SELECT 1 FROM inbound WHERE `+groupOf+` AND state = 'received'), ?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
		RETURNING id, lead`,
		r.Lead, r.EventKey, r.Channel, r.Account, r.Conversation, r.MessageID, r.Payload, r.ReceivedAt, r.History, r.Thread, r.Sender, r.Said).Scan(&id, &lead)
	return id, lead, err
}

// InsertFailed adds a row of an event that failed at once, of which nothing is kept but the reason.
func (q *Queries) InsertFailed(ctx context.Context, r Row) error {
	_, err := q.w.ExecContext(ctx, `INSERT INTO inbound (event_key, channel, account, conversation, message_id, state, payload_json, error, received_at, done_at)
		VALUES (?1, ?2, ?3, '', '', 'failed', '', ?4, ?5, ?5)`, r.EventKey, r.Channel, r.Account, r.Reason, r.ReceivedAt)
	return err
}

// Waiting returns the row of a message for which no turn has begun; sql.ErrNoRows when there is none.
func (q *Queries) Waiting(ctx context.Context, channel, account, conversation, message string) (Row, error) {
	var r Row
	err := q.r.QueryRowContext(ctx, `SELECT `+rowColumns+` FROM inbound
		WHERE channel = ? AND account = ? AND conversation = ? AND message_id = ? AND state = 'received' ORDER BY id DESC LIMIT 1`,
		channel, account, conversation, message).Scan(r.fields()...)
	return r, err
}

// Begun returns the row of a message for which a turn has begun and whose edits are news; sql.ErrNoRows
// when there is none.
func (q *Queries) Begun(ctx context.Context, channel, account, conversation, message string) (Row, error) {
	var r Row
	err := q.r.QueryRowContext(ctx, `SELECT `+rowColumns+` FROM inbound
		WHERE channel = ? AND account = ? AND conversation = ? AND message_id = ? AND said != 0 AND state != 'received' ORDER BY id DESC LIMIT 1`,
		channel, account, conversation, message).Scan(r.fields()...)
	return r, err
}

// Group returns the rows of a group that are in a state, in order of arrival. The state is part of the
// text: there are partial indices on it, and SQLite would compile the query anew for each value.
func (q *Queries) Group(ctx context.Context, lead int64, state State) ([]Row, error) {
	return q.rows(ctx, `SELECT `+rowColumns+` FROM inbound WHERE `+groupOf+` AND state = '`+string(state)+`' ORDER BY id`, lead)
}

// Open returns the rows that are received or dispatched, in order of arrival.
func (q *Queries) Open(ctx context.Context) ([]Row, error) {
	return q.rows(ctx, `SELECT `+rowColumns+` FROM inbound WHERE state IN ('received', 'dispatched') ORDER BY id`)
}

// AllDead returns the newest rows that are given up, in order of arrival.
func (q *Queries) AllDead(ctx context.Context, most int) ([]Row, error) {
	return q.rows(ctx, `SELECT * FROM (SELECT `+rowColumns+` FROM inbound WHERE state = 'dead' ORDER BY id DESC LIMIT ?) ORDER BY id`, most)
}

func (q *Queries) rows(ctx context.Context, query string, args ...any) ([]Row, error) {
	rows, err := q.r.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Row
	for rows.Next() {
		var r Row
		if err := rows.Scan(r.fields()...); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// Dispatch counts the begin of a turn for the open rows of a group; it reports whether there were any.
func (q *Queries) Dispatch(ctx context.Context, lead int64) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE inbound SET state = 'dispatched', attempts = attempts + 1
		WHERE `+groupOf+` AND state IN ('received', 'dispatched')`, lead))
}

// Done ends the open rows of a group well; what they said is not kept.
func (q *Queries) Done(ctx context.Context, lead, now int64) error {
	_, err := q.w.ExecContext(ctx, `UPDATE inbound SET state = 'done', done_at = ?2, payload_json = '', history_json = '', error = ''
		WHERE `+groupOf+` AND state IN ('received', 'dispatched')`, lead, now)
	return err
}

// Fail ends the open rows of a group badly: dead from so many attempts on.
func (q *Queries) Fail(ctx context.Context, lead int64, reason string, deadly int, now int64) error {
	_, err := q.w.ExecContext(ctx, `UPDATE inbound SET state = iif(attempts >= ?2, 'dead', 'failed'), done_at = ?3, error = ?4
		WHERE `+groupOf+` AND state IN ('received', 'dispatched')`, lead, deadly, now, reason)
	return err
}

// Withdraw ends one row that no turn has begun for; what it said is not kept. It reports whether its
// group has no such row left.
func (q *Queries) Withdraw(ctx context.Context, r Row, now int64) (last bool, err error) {
	_, err = q.w.ExecContext(ctx, `UPDATE inbound SET state = 'done', done_at = ?, payload_json = '', history_json = '', said = 0
		WHERE id = ? AND state = 'received'`, now, r.ID)
	if err != nil {
		return false, err
	}
	err = q.r.QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT 1 FROM inbound WHERE `+groupOf+` AND state = 'received')`, r.Group()).Scan(&last)
	return last, err
}

// Settle ends the dead rows of a group, which were given another try; what they said is not kept.
func (q *Queries) Settle(ctx context.Context, lead int64) error {
	_, err := q.w.ExecContext(ctx, `UPDATE inbound SET state = 'failed', payload_json = '', history_json = ''
		WHERE `+groupOf+` AND state = 'dead'`, lead)
	return err
}

// SetPayload replaces what a row that no turn has begun for says.
func (q *Queries) SetPayload(ctx context.Context, id int64, payload string, said int64) error {
	_, err := q.w.ExecContext(ctx, `UPDATE inbound SET payload_json = ?, said = iif(said = 0, 0, ?) WHERE id = ? AND state = 'received'`, payload, said, id)
	return err
}

// SetSaid replaces the fingerprint of what a row said last.
func (q *Queries) SetSaid(ctx context.Context, id, said int64) error {
	_, err := q.w.ExecContext(ctx, `UPDATE inbound SET said = ? WHERE id = ?`, said, id)
	return err
}

// Directed notes of the open rows of a group that what they say to the bot itself is done.
func (q *Queries) Directed(ctx context.Context, lead int64) error {
	_, err := q.w.ExecContext(ctx, `UPDATE inbound SET directed = 1 WHERE `+groupOf+` AND state IN ('received', 'dispatched')`, lead)
	return err
}

// PruneRows deletes ended rows that arrived before the given time.
func (q *Queries) PruneRows(ctx context.Context, before int64) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM inbound WHERE state NOT IN ('received', 'dispatched') AND received_at < ?`, before)
	return err
}

// PutKeys makes event keys known, at least one and all different; it reports whether all are new.
func (q *Queries) PutKeys(ctx context.Context, keys []string, now int64) (bool, error) {
	return q.putKeys(ctx, keys, now, 0)
}

// OverhearKeys is PutKeys for a message that was not for the bot.
func (q *Queries) OverhearKeys(ctx context.Context, keys []string, now int64) (bool, error) {
	return q.putKeys(ctx, keys, now, 1)
}

func (q *Queries) putKeys(ctx context.Context, keys []string, now int64, overheard int) (bool, error) {
	args := make([]any, 0, 3*len(keys))
	for _, k := range keys {
		args = append(args, k, now, overheard)
	}
	res, err := q.w.ExecContext(ctx, `INSERT INTO inbound_keys (event_key, at, overheard) VALUES (?, ?, ?)`+strings.Repeat(", (?, ?, ?)", len(keys)-1)+`
		ON CONFLICT (event_key) DO NOTHING`, args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == int64(len(keys)), err
}

// Known reports whether one of the keys is known, and whether its message was not for the bot.
func (q *Queries) Known(ctx context.Context, keys []string) (known, overheard bool, err error) {
	err = q.r.QueryRowContext(ctx, `SELECT count(*) > 0, coalesce(max(overheard), 0) FROM inbound_keys
		WHERE event_key IN (?`+strings.Repeat(", ?", len(keys)-1)+`)`, anys(keys)...).Scan(&known, &overheard)
	return known, overheard, err
}

func anys(keys []string) []any {
	out := make([]any, len(keys))
	for i, k := range keys {
		out[i] = k
	}
	return out
}

// ClaimKeys reports whether one of the keys is that of a message that was not for the bot, once.
func (q *Queries) ClaimKeys(ctx context.Context, keys []string) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE inbound_keys SET overheard = 0
		WHERE event_key IN (?`+strings.Repeat(", ?", len(keys)-1)+`) AND overheard = 1`, anys(keys)...))
}

// PruneKeys deletes keys that were stored before the given time.
func (q *Queries) PruneKeys(ctx context.Context, before int64) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM inbound_keys WHERE at < ?`, before)
	return err
}

// Cursor returns a stored cursor, "" = none.
func (q *Queries) Cursor(ctx context.Context, channel, account, name string) (string, error) {
	var v string
	err := q.r.QueryRowContext(ctx, `SELECT value FROM cursors WHERE channel = ? AND account = ? AND name = ?`, channel, account, name).Scan(&v)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return v, err
}

// SetCursor stores a cursor.
func (q *Queries) SetCursor(ctx context.Context, channel, account, name, value string) error {
	_, err := q.w.ExecContext(ctx, `INSERT INTO cursors (channel, account, name, value) VALUES (?, ?, ?, ?)
		ON CONFLICT (channel, account, name) DO UPDATE SET value = excluded.value`, channel, account, name, value)
	return err
}

func changed(res sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}
