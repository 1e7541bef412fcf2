package inbounddb

import "context"

// Place is a conversation, or a thread of one.
type Place struct{ Channel, Account, Conversation, Thread string }

// Line is one overheard message.
type Line struct {
	Seq          int64 // order within the place; 0 = the next
	Message      string
	Sender, Name string
	Bot          bool
	Roles        string // ids with blanks between them
	Text         string
	At           int64
}

// PutLine stores a line; under its own number, if it has one.
func (q *Queries) PutLine(ctx context.Context, p Place, l Line) error {
	_, err := q.w.ExecContext(ctx, `INSERT INTO history_buffer (seq, channel, account, conversation, thread, message_id, sender, name, bot, roles, text, at)
		VALUES (nullif(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		l.Seq, p.Channel, p.Account, p.Conversation, p.Thread, l.Message, l.Sender, l.Name, l.Bot, l.Roles, l.Text, l.At)
	return err
}

// TrimLines keeps the newest lines of a place.
func (q *Queries) TrimLines(ctx context.Context, p Place, keep int) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM history_buffer WHERE channel = ?1 AND account = ?2 AND conversation = ?3 AND thread = ?4
		AND seq <= (SELECT seq FROM history_buffer WHERE channel = ?1 AND account = ?2 AND conversation = ?3 AND thread = ?4
			ORDER BY seq DESC LIMIT 1 OFFSET ?5)`, p.Channel, p.Account, p.Conversation, p.Thread, keep)
	return err
}

// TakeLines removes the lines of a place and returns them, in no order.
func (q *Queries) TakeLines(ctx context.Context, p Place) ([]Line, error) {
	rows, err := q.w.QueryContext(ctx, `DELETE FROM history_buffer WHERE channel = ? AND account = ? AND conversation = ? AND thread = ?
		RETURNING seq, message_id, sender, name, bot, roles, text, at`, p.Channel, p.Account, p.Conversation, p.Thread)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Line
	for rows.Next() {
		var l Line
		if err := rows.Scan(&l.Seq, &l.Message, &l.Sender, &l.Name, &l.Bot, &l.Roles, &l.Text, &l.At); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, rows.Err()
}

// EditLine replaces what a sender's line says, in whatever thread.
func (q *Queries) EditLine(ctx context.Context, p Place, message, sender, text string) error {
	_, err := q.w.ExecContext(ctx, `UPDATE history_buffer SET text = ? WHERE channel = ? AND account = ? AND conversation = ? AND message_id = ? AND sender = ?`,
		text, p.Channel, p.Account, p.Conversation, message, sender)
	return err
}

// DropLine removes the line of a message, in whatever thread; it reports whether there was one.
func (q *Queries) DropLine(ctx context.Context, p Place, message string) (bool, error) {
	return changed(q.w.ExecContext(ctx, `DELETE FROM history_buffer WHERE channel = ? AND account = ? AND conversation = ? AND message_id = ?`,
		p.Channel, p.Account, p.Conversation, message))
}

// PruneLines deletes lines from before the given time.
func (q *Queries) PruneLines(ctx context.Context, before int64) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM history_buffer WHERE at < ?`, before)
	return err
}
