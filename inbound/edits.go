package inbound

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"understudy/chat"
	"understudy/inbound/internal/inbounddb"
)

// textEdited stands before the new text of a message that was changed after a turn had begun for it.
const textEdited = "(changed an earlier message, which now reads:) "

// mostEdits is how many changed messages a place without a history limit keeps as context.
const mostEdits = 20

// fingerprint tells texts apart without keeping them. It is never 0.
func fingerprint(text string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return int64(h.Sum64() | 1)
}

// said is the fingerprint of an entry whose edits are news, else 0.
func (e entry) said() int64 {
	if !e.news {
		return 0
	}
	return fingerprint(e.m.Text)
}

// edit takes in a new version of a message. While no turn has begun for it, that is what is answered; later
// it is a line of context for the next answer, among the newest of its place, and gets none itself
// (spec/chat.md §1.6). limit is how many lines a place keeps; with 0 nothing is kept. A message that was
// overheard is changed where it stands.
func (j *journal) edit(ctx context.Context, m chat.Inbound, limit int, now time.Time) error {
	return write(ctx, j.db, func(q *inbounddb.Queries) error {
		isNew, err := q.PutKeys(ctx, eventKeys(m), now.UnixMilli())
		if err != nil || !isNew || m.ID == "" {
			return err
		}
		row, err := q.Waiting(ctx, m.Address.Channel, m.Address.Account, m.Address.Conversation, m.ID)
		if err == nil {
			return replace(ctx, q, row, m)
		}
		if errors.Is(err, sql.ErrNoRows) {
			row, err = q.Begun(ctx, m.Address.Channel, m.Address.Account, m.Address.Conversation, m.ID)
		}
		line, worth := lineOf(m)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return q.EditLine(ctx, placeOf(m.Address), m.ID, m.Sender.ID, line.Text)
		case err != nil || !worth || limit == 0 || row.Sender != m.Sender.ID || row.Said == fingerprint(m.Text):
			return err
		}
		return note(ctx, q, row, line, limit, fingerprint(m.Text), now)
	})
}

// note keeps what a message says now as context for where it was answered, instead of what an earlier change
// of it made it say.
func note(ctx context.Context, q *inbounddb.Queries, row inbounddb.Row, line inbounddb.Line, limit int, said int64, now time.Time) error {
	place := inbounddb.Place{Channel: row.Channel, Account: row.Account, Conversation: row.Conversation, Thread: row.Thread}
	if _, err := q.DropLine(ctx, place, line.Message); err != nil {
		return err
	}
	line.Text, line.At = textEdited+line.Text, now.UnixMilli()
	return errors.Join(q.PutLine(ctx, place, line), q.TrimLines(ctx, place, limit), q.SetSaid(ctx, row.ID, said))
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
	return q.SetPayload(ctx, row.ID, string(payload), fingerprint(m.Text))
}
