// Package outboxdb holds the statements of the outbox (spec/chat.md §10): one method, one statement.
package outboxdb

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

// Row is one line of the outbox. Times are integer milliseconds.
type Row struct {
	ID        int64
	IdemKey   string
	TurnID    string
	Seq       int
	Kind      string
	Channel   string
	Account   string
	DestKey   string
	Body      string
	State     string
	EditID    string
	Receipts  string
	CreatedAt int64
}

const columns = `id, idem_key, turn_id, seq, kind, channel, account, dest_key, body_json, state, edit_id, receipts_json, created_at`

func (r *Row) fields() []any {
	return []any{
		&r.ID, &r.IdemKey, &r.TurnID, &r.Seq, &r.Kind, &r.Channel, &r.Account, &r.DestKey,
		&r.Body, &r.State, &r.EditID, &r.Receipts, &r.CreatedAt,
	}
}

// Insert adds a pending row and returns its id, or 0 when its idem key is there already.
func (q *Queries) Insert(ctx context.Context, r Row) (int64, error) {
	res, err := q.w.ExecContext(ctx, `INSERT INTO outbox (idem_key, turn_id, seq, kind, channel, account, dest_key, body_json, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (idem_key) DO NOTHING`,
		r.IdemKey, r.TurnID, r.Seq, r.Kind, r.Channel, r.Account, r.DestKey, r.Body, r.CreatedAt)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 0 {
		return 0, err
	}
	return res.LastInsertId()
}

// Get returns one row; sql.ErrNoRows when there is none.
func (q *Queries) Get(ctx context.Context, id int64) (Row, error) {
	var r Row
	err := q.r.QueryRowContext(ctx, `SELECT `+columns+` FROM outbox WHERE id = ?`, id).Scan(r.fields()...)
	return r, err
}

// PendingOf returns the oldest pending rows of a destination.
func (q *Queries) PendingOf(ctx context.Context, dest string, limit int) ([]Row, error) {
	return q.list(ctx, `SELECT `+columns+` FROM outbox
		WHERE dest_key = ? AND state = 'pending' ORDER BY id LIMIT ?`, dest, limit)
}

// Waiting returns how many rows of an account are not at their end.
func (q *Queries) Waiting(ctx context.Context, channel, account string) (int, error) {
	var n int
	err := q.r.QueryRowContext(ctx, `SELECT count(*) FROM outbox
		WHERE channel = ? AND account = ? AND state IN ('pending', 'claimed')`, channel, account).Scan(&n)
	return n, err
}

// Claimed returns every row whose platform call had begun.
func (q *Queries) Claimed(ctx context.Context) ([]Row, error) {
	return q.list(ctx, `SELECT `+columns+` FROM outbox WHERE state = 'claimed' ORDER BY id`)
}

// OfTurn returns the rows of a turn.
func (q *Queries) OfTurn(ctx context.Context, turn string) ([]Row, error) {
	return q.list(ctx, `SELECT `+columns+` FROM outbox WHERE turn_id = ? ORDER BY id`, turn)
}

func (q *Queries) list(ctx context.Context, query string, args ...any) ([]Row, error) {
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

// Destination is a destination with pending rows.
type Destination struct{ Key, Channel, Account string }

// PendingDestinations returns every destination with pending rows, the longest waiting first.
func (q *Queries) PendingDestinations(ctx context.Context) ([]Destination, error) {
	rows, err := q.r.QueryContext(ctx, `SELECT dest_key, channel, account FROM outbox
		WHERE state = 'pending' GROUP BY dest_key, channel, account ORDER BY min(id)`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Destination
	for rows.Next() {
		var d Destination
		if err := rows.Scan(&d.Key, &d.Channel, &d.Account); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, rows.Err()
}

// Claim marks that a platform call for a row begins; editID is the message it replaces, "" = a new
// message.
func (q *Queries) Claim(ctx context.Context, id int64, editID string, now int64) error {
	_, err := q.w.ExecContext(ctx, `UPDATE outbox SET state = 'claimed', claimed_at = ?, edit_id = ?, attempts = attempts + 1
		WHERE id = ?`, now, editID, id)
	return err
}

// Release marks that a row's call did not reach the platform, or may be repeated.
func (q *Queries) Release(ctx context.Context, id int64) error {
	_, err := q.w.ExecContext(ctx, `UPDATE outbox SET state = 'pending', claimed_at = NULL WHERE id = ?`, id)
	return err
}

// Progress stores the receipts of what is done of a row; the rest is pending.
func (q *Queries) Progress(ctx context.Context, id int64, receipts string) error {
	_, err := q.w.ExecContext(ctx, `UPDATE outbox SET state = 'pending', claimed_at = NULL, edit_id = '', receipts_json = ?
		WHERE id = ?`, receipts, id)
	return err
}

// SetBody replaces what a row has to say.
func (q *Queries) SetBody(ctx context.Context, id int64, body string) error {
	_, err := q.w.ExecContext(ctx, `UPDATE outbox SET body_json = ? WHERE id = ?`, body, id)
	return err
}

// End gives a row its last state. The text is not kept: the transcript has it.
func (q *Queries) End(ctx context.Context, id int64, state, receipts, reason string, now int64) error {
	_, err := q.w.ExecContext(ctx, `UPDATE outbox SET state = ?, receipts_json = ?, error = ?, sent_at = ?, claimed_at = NULL, body_json = ''
		WHERE id = ?`, state, receipts, reason, now, id)
	return err
}

// Prune deletes ended rows that are older than before.
func (q *Queries) Prune(ctx context.Context, before int64) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM outbox WHERE state IN ('sent', 'failed', 'unknown') AND created_at < ?`, before)
	return err
}

// Preview is a preview message that stands in a conversation.
type Preview struct {
	TurnID    string
	Dest      string // the address, JSON
	MessageID string
	Stream    bool // it grows on the platform's side until it is stopped
}

// PutPreview remembers a turn's preview.
func (q *Queries) PutPreview(ctx context.Context, p Preview, now int64) error {
	_, err := q.w.ExecContext(ctx, `INSERT INTO previews (turn_id, dest_json, message_id, stream, at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (turn_id) DO UPDATE SET dest_json = excluded.dest_json, message_id = excluded.message_id,
			stream = excluded.stream, at = excluded.at`,
		p.TurnID, p.Dest, p.MessageID, p.Stream, now)
	return err
}

// DropPreview forgets a turn's preview.
func (q *Queries) DropPreview(ctx context.Context, turn string) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM previews WHERE turn_id = ?`, turn)
	return err
}

// PreviewOf returns the message id of a turn's preview, "" when none stands, and whether it grows.
func (q *Queries) PreviewOf(ctx context.Context, turn string) (id string, stream bool, err error) {
	err = q.r.QueryRowContext(ctx, `SELECT message_id, stream FROM previews WHERE turn_id = ?`, turn).Scan(&id, &stream)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return id, stream, err
}

// Previews returns every preview that was left standing.
func (q *Queries) Previews(ctx context.Context) ([]Preview, error) {
	rows, err := q.r.QueryContext(ctx, `SELECT turn_id, dest_json, message_id, stream FROM previews ORDER BY at`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Preview
	for rows.Next() {
		var p Preview
		if err := rows.Scan(&p.TurnID, &p.Dest, &p.MessageID, &p.Stream); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, rows.Err()
}
