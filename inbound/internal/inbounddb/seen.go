package inbounddb

import "context"

// Mark is how far a place has been seen. Times are integer milliseconds.
type Mark struct {
	Place
	Kind, Space string
	LastID      string // "" = none to note
	LastAt      int64
	ActiveAt    int64 // when the bot was last called there, 0 = never
}

// PutMark moves a mark forward; an older message never moves it back.
func (q *Queries) PutMark(ctx context.Context, m Mark) error {
	_, err := q.w.ExecContext(ctx, `INSERT INTO seen (channel, account, conversation, thread, kind, space, last_id, last_at, active_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (channel, account, conversation, thread) DO UPDATE SET kind = excluded.kind, space = excluded.space,
			last_id = iif(excluded.last_id != '' AND excluded.last_at >= last_at, excluded.last_id, last_id),
			last_at = iif(excluded.last_id != '', max(excluded.last_at, last_at), last_at),
			active_at = max(excluded.active_at, active_at)`,
		m.Channel, m.Account, m.Conversation, m.Thread, m.Kind, m.Space, m.LastID, m.LastAt, m.ActiveAt)
	return err
}

// Marks returns the marks of an account's places that were active since the given time, the latest
// first.
func (q *Queries) Marks(ctx context.Context, channel, account string, since int64, most int) ([]Mark, error) {
	rows, err := q.r.QueryContext(ctx, `SELECT channel, account, conversation, thread, kind, space, last_id, last_at, active_at FROM seen
		WHERE channel = ? AND account = ? AND active_at >= ? AND active_at > 0 AND last_id != '' ORDER BY active_at DESC LIMIT ?`,
		channel, account, since, most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Mark
	for rows.Next() {
		var m Mark
		if err := rows.Scan(&m.Channel, &m.Account, &m.Conversation, &m.Thread, &m.Kind, &m.Space, &m.LastID, &m.LastAt, &m.ActiveAt); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, rows.Err()
}

// PruneMarks deletes marks of places where nothing was said since the given time.
func (q *Queries) PruneMarks(ctx context.Context, before int64) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM seen WHERE last_at < ? AND active_at < ?`, before, before)
	return err
}

// PutParticipation stores that the bot answers in a thread.
func (q *Queries) PutParticipation(ctx context.Context, p Place, now int64) error {
	_, err := q.w.ExecContext(ctx, `INSERT INTO thread_participation (channel, account, conversation, thread, at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (channel, account, conversation, thread) DO UPDATE SET at = max(excluded.at, at)`,
		p.Channel, p.Account, p.Conversation, p.Thread, now)
	return err
}

// PruneParticipation deletes what is older than the given time.
func (q *Queries) PruneParticipation(ctx context.Context, before int64) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM thread_participation WHERE at < ?`, before)
	return err
}

// Standing is what the store knows of a sender and of the thread that the sender writes in.
type Standing struct{ Owner, Approved, Participates bool }

// Standing looks up a sender. The bot participates in a thread where it answered since the given time.
func (q *Queries) Standing(ctx context.Context, p Place, sender string, since int64) (Standing, error) {
	var s Standing
	err := q.r.QueryRowContext(ctx, `SELECT
		EXISTS (SELECT 1 FROM owners WHERE channel = ?1 AND sender = ?5),
		EXISTS (SELECT 1 FROM pairing_allow WHERE channel = ?1 AND account = ?2 AND sender = ?5),
		EXISTS (SELECT 1 FROM thread_participation WHERE channel = ?1 AND account = ?2 AND conversation = ?3 AND thread = ?4 AND ?4 != '' AND at >= ?6)`,
		p.Channel, p.Account, p.Conversation, p.Thread, sender, since).Scan(&s.Owner, &s.Approved, &s.Participates)
	return s, err
}
