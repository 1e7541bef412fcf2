// Package inbounddb holds the statements of the journal, of pairing and of the cursors
// (spec/chat.md §10): one method, one statement.
package inbounddb

import (
	"context"
	"database/sql"
	"errors"
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

// Row is one line of the journal. Times are integer milliseconds.
type Row struct {
	ID           int64
	EventKey     string
	Channel      string
	Account      string
	Conversation string
	MessageID    string
	State        string
	Attempts     int
	Payload      string
	ReceivedAt   int64
}

const rowColumns = `id, event_key, channel, account, conversation, message_id, state, attempts, payload_json, received_at`

func (r *Row) fields() []any {
	return []any{&r.ID, &r.EventKey, &r.Channel, &r.Account, &r.Conversation, &r.MessageID, &r.State, &r.Attempts, &r.Payload, &r.ReceivedAt}
}

// Insert adds a received row and returns its id.
func (q *Queries) Insert(ctx context.Context, r Row) (int64, error) {
	res, err := q.w.ExecContext(ctx, `INSERT INTO inbound (event_key, channel, account, conversation, message_id, payload_json, received_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)`, r.EventKey, r.Channel, r.Account, r.Conversation, r.MessageID, r.Payload, r.ReceivedAt)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// Get returns one row; sql.ErrNoRows when there is none.
func (q *Queries) Get(ctx context.Context, id int64) (Row, error) {
	var r Row
	err := q.r.QueryRowContext(ctx, `SELECT `+rowColumns+` FROM inbound WHERE id = ?`, id).Scan(r.fields()...)
	return r, err
}

// Waiting returns the row of a message for which no turn has begun; sql.ErrNoRows when there is none.
func (q *Queries) Waiting(ctx context.Context, channel, account, conversation, message string) (Row, error) {
	var r Row
	err := q.r.QueryRowContext(ctx, `SELECT `+rowColumns+` FROM inbound
		WHERE channel = ? AND account = ? AND conversation = ? AND message_id = ? AND state = 'received' ORDER BY id DESC LIMIT 1`,
		channel, account, conversation, message).Scan(r.fields()...)
	return r, err
}

// Open returns the rows that are received or dispatched, in order of arrival.
func (q *Queries) Open(ctx context.Context) ([]Row, error) {
	rows, err := q.r.QueryContext(ctx, `SELECT `+rowColumns+` FROM inbound WHERE state IN ('received', 'dispatched') ORDER BY id`)
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

// Dispatch counts the begin of a turn for an open row; it reports whether the row was open.
func (q *Queries) Dispatch(ctx context.Context, id int64) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE inbound SET state = 'dispatched', attempts = attempts + 1
		WHERE id = ? AND state IN ('received', 'dispatched')`, id))
}

// Done ends an open row well; what it said is not kept.
func (q *Queries) Done(ctx context.Context, id, now int64) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE inbound SET state = 'done', done_at = ?, payload_json = '', error = ''
		WHERE id = ? AND state IN ('received', 'dispatched')`, now, id))
}

// Fail ends an open row badly: dead from so many attempts on.
func (q *Queries) Fail(ctx context.Context, id int64, reason string, deadly int, now int64) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE inbound SET state = iif(attempts >= ?, 'dead', 'failed'), done_at = ?, error = ?
		WHERE id = ? AND state IN ('received', 'dispatched')`, deadly, now, reason, id))
}

// SetPayload replaces what a row that no turn has begun for says.
func (q *Queries) SetPayload(ctx context.Context, id int64, payload string) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE inbound SET payload_json = ? WHERE id = ? AND state = 'received'`, payload, id))
}

// PruneRows deletes ended rows that arrived before the given time.
func (q *Queries) PruneRows(ctx context.Context, before int64) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM inbound WHERE state NOT IN ('received', 'dispatched') AND received_at < ?`, before)
	return err
}

// PutKey adds an event key; it reports whether it is new.
func (q *Queries) PutKey(ctx context.Context, key string, now int64) (bool, error) {
	return changed(q.w.ExecContext(ctx, `INSERT INTO inbound_keys (event_key, at) VALUES (?, ?)
		ON CONFLICT (event_key) DO NOTHING`, key, now))
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
