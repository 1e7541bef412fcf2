package inbounddb

import "context"

// PutMenu stores a menu under a new token and forgets all but the newest of them.
func (q *Queries) PutMenu(ctx context.Context, token, payload string, until int64, keep int) error {
	res, err := q.w.ExecContext(ctx, `INSERT INTO callbacks (token, payload_json, until) VALUES (?, ?, ?)`, token, payload, until)
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	_, err = q.w.ExecContext(ctx, `DELETE FROM callbacks WHERE id <= ?`, id-int64(keep))
	return err
}

// Menu returns a menu that is valid at now; sql.ErrNoRows when there is none.
func (q *Queries) Menu(ctx context.Context, token string, now int64) (payload string, err error) {
	err = q.r.QueryRowContext(ctx, `SELECT payload_json FROM callbacks WHERE token = ? AND until > ?`, token, now).Scan(&payload)
	return payload, err
}

// PruneMenus deletes what expired.
func (q *Queries) PruneMenus(ctx context.Context, now int64) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM callbacks WHERE until <= ?`, now)
	return err
}
