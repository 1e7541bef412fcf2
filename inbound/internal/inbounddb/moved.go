package inbounddb

import "context"

// Move is a conversation that has a new id.
type Move struct{ Channel, Account, Conversation, Former string }

// Moves returns all moves.
func (q *Queries) Moves(ctx context.Context) ([]Move, error) {
	rows, err := q.r.QueryContext(ctx, `SELECT channel, account, conversation, former FROM moved_conversations`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Move
	for rows.Next() {
		var m Move
		if err := rows.Scan(&m.Channel, &m.Account, &m.Conversation, &m.Former); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, rows.Err()
}

// PutMove stores a move; it reports whether it is news. Only the first one to an id counts.
func (q *Queries) PutMove(ctx context.Context, m Move, now int64) (bool, error) {
	return changed(q.w.ExecContext(ctx, `INSERT INTO moved_conversations (channel, account, conversation, former, at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (channel, account, conversation) DO NOTHING`, m.Channel, m.Account, m.Conversation, m.Former, now))
}

// MovePlaces gives what is kept of a conversation (marks, threads, overheard messages) to its new id.
// What is kept of that already stays.
func (q *Queries) MovePlaces(ctx context.Context, m Move) error {
	for _, table := range []string{"seen", "thread_participation", "history_buffer"} {
		_, err := q.w.ExecContext(ctx, `UPDATE OR IGNORE `+table+` SET conversation = ?3 WHERE channel = ?1 AND account = ?2 AND conversation = ?4`,
			m.Channel, m.Account, m.Conversation, m.Former)
		if err != nil {
			return err
		}
	}
	return nil
}
