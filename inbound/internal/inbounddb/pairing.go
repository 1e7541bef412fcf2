package inbounddb

import (
	"context"
	"database/sql"
	"errors"
)

// Request is a pending pairing. Times are integer milliseconds.
type Request struct {
	Channel, Account, Sender, Name string
	Address                        string // JSON
	CodeHash                       []byte
	ExpiresAt                      int64
}

// PutRequest stores a request in place of an older one of the same sender.
func (q *Queries) PutRequest(ctx context.Context, r Request) error {
	_, err := q.w.ExecContext(ctx, `INSERT OR REPLACE INTO pairing_requests (channel, account, sender, name, address_json, code_hash, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)`, r.Channel, r.Account, r.Sender, r.Name, r.Address, r.CodeHash, r.ExpiresAt)
	return err
}

// DropRequest removes a sender's request.
func (q *Queries) DropRequest(ctx context.Context, channel, account, sender string) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM pairing_requests WHERE channel = ? AND account = ? AND sender = ?`, channel, account, sender)
	return err
}

// Requests returns the requests that are valid at now; an empty channel means all of them.
func (q *Queries) Requests(ctx context.Context, channel string, now int64) ([]Request, error) {
	rows, err := q.r.QueryContext(ctx, `SELECT channel, account, sender, name, address_json, code_hash, expires_at FROM pairing_requests
		WHERE (? = '' OR channel = ?) AND expires_at > ? ORDER BY expires_at`, channel, channel, now)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Request
	for rows.Next() {
		var r Request
		if err := rows.Scan(&r.Channel, &r.Account, &r.Sender, &r.Name, &r.Address, &r.CodeHash, &r.ExpiresAt); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// PruneRequests deletes what expired.
func (q *Queries) PruneRequests(ctx context.Context, now int64) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM pairing_requests WHERE expires_at <= ?`, now)
	return err
}

// Allow stores an approval.
func (q *Queries) Allow(ctx context.Context, r Request, by string, now int64) error {
	_, err := q.w.ExecContext(ctx, `INSERT OR REPLACE INTO pairing_allow (channel, account, sender, name, approved_by, at)
		VALUES (?, ?, ?, ?, ?, ?)`, r.Channel, r.Account, r.Sender, r.Name, by, now)
	return err
}

// Disallow removes an approval; it reports whether there was one.
func (q *Queries) Disallow(ctx context.Context, channel, account, sender string) (bool, error) {
	return changed(q.w.ExecContext(ctx, `DELETE FROM pairing_allow WHERE channel = ? AND account = ? AND sender = ?`, channel, account, sender))
}

// Approved is a sender who was approved.
type Approved struct {
	Channel, Account, Sender, Name string
	At                             int64
}

// AllAllowed returns the approvals of a channel; an empty channel means all of them.
func (q *Queries) AllAllowed(ctx context.Context, channel string) ([]Approved, error) {
	rows, err := q.r.QueryContext(ctx, `SELECT channel, account, sender, name, at FROM pairing_allow
		WHERE ? = '' OR channel = ? ORDER BY at`, channel, channel)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Approved
	for rows.Next() {
		var a Approved
		if err := rows.Scan(&a.Channel, &a.Account, &a.Sender, &a.Name, &a.At); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, rows.Err()
}

// PutMiss counts a wrong code.
func (q *Queries) PutMiss(ctx context.Context, channel string, now int64) error {
	_, err := q.w.ExecContext(ctx, `INSERT INTO pairing_misses (channel, at) VALUES (?, ?)`, channel, now)
	return err
}

// Misses returns when the last wrong code of a channel came, 0 = never, and how many came in the
// span up to then. Those of a future that a wrong clock has seen do not count.
func (q *Queries) Misses(ctx context.Context, channel string, span, now int64) (last int64, n int, err error) {
	var at sql.NullInt64
	err = q.r.QueryRowContext(ctx, `SELECT max(at), count(*) FROM pairing_misses WHERE channel = ? AND at <= ?
		AND at > (SELECT max(at) FROM pairing_misses WHERE channel = ? AND at <= ?) - ?`, channel, now, channel, now, span).Scan(&at, &n)
	return at.Int64, n, err
}

// PruneMisses deletes wrong codes from before the given time.
func (q *Queries) PruneMisses(ctx context.Context, before int64) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM pairing_misses WHERE at < ?`, before)
	return err
}

// PutOwner stores an owner.
func (q *Queries) PutOwner(ctx context.Context, channel, sender string, now int64) error {
	_, err := q.w.ExecContext(ctx, `INSERT OR IGNORE INTO owners (channel, sender, at) VALUES (?, ?, ?)`, channel, sender, now)
	return err
}

// AnyOwner reports whether there is a stored owner.
func (q *Queries) AnyOwner(ctx context.Context) (bool, error) {
	return q.exists(ctx, `SELECT 1 FROM owners LIMIT 1`)
}

// DropOwner removes a stored owner.
func (q *Queries) DropOwner(ctx context.Context, channel, sender string) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM owners WHERE channel = ? AND sender = ?`, channel, sender)
	return err
}

func (q *Queries) exists(ctx context.Context, query string, args ...any) (bool, error) {
	var one int
	err := q.r.QueryRowContext(ctx, query, args...).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
