package inbound

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/chat"
	"understudy/inbound/internal/inbounddb"
)

// HistoryLine is a message of a group that was not for the bot: context for the next one that is
// (spec/chat.md §1.7). Its text is untrusted.
type HistoryLine struct {
	ID     string      `json:"id"`
	Sender chat.Sender `json:"sender"`
	Roles  []string    `json:"roles,omitempty"` // of the sender, at that time
	Text   string      `json:"text"`
	At     time.Time   `json:"at"`
}

// Bounds of the texts of overheard messages, in bytes.
const (
	maxLine  = 4000
	maxLines = 64 << 10 // of those that go with one message: the newest do
)

// storedLine is a HistoryLine in the journal, where it keeps its number: it may go back.
type storedLine struct {
	HistoryLine
	Seq int64 `json:"seq"`
}

func placeOf(a chat.Address) inbounddb.Place {
	return inbounddb.Place{Channel: a.Channel, Account: a.Account, Conversation: a.Conversation, Thread: a.Thread}
}

// lineOf returns what is kept of a message that was overheard; it reports whether that is anything.
func lineOf(m chat.Inbound) (inbounddb.Line, bool) {
	text := cutTo(m.Text, maxLine)
	for _, f := range m.Attachments {
		name := f.Name
		if name == "" {
			name = f.MediaType
		}
		text = strings.TrimSpace(text + "\n[file: " + cleanName(name) + "]")
	}
	return inbounddb.Line{
		Message: m.ID, Sender: m.Sender.ID, Name: cleanName(m.Sender.Name), Bot: m.Sender.Bot, Roles: strings.Join(m.Roles, " "), Text: text, At: m.At.UnixMilli(),
	}, text != ""
}

// takeHistory empties the buffer of a place, for the one message whose answer it is context for. It
// returns the lines, and as they are stored with that message.
func takeHistory(ctx context.Context, q *inbounddb.Queries, from chat.Address) (string, []HistoryLine, error) {
	rows, err := q.TakeLines(ctx, placeOf(from))
	if err != nil || len(rows) == 0 {
		return "", nil, err
	}
	slices.SortFunc(rows, func(a, b inbounddb.Line) int { return cmp.Compare(a.Seq, b.Seq) })
	rows = newest(rows)
	lines, stored := make([]HistoryLine, 0, len(rows)), make([]storedLine, 0, len(rows))
	for _, r := range rows {
		l := HistoryLine{r.Message, chat.Sender{ID: r.Sender, Name: r.Name, Bot: r.Bot}, strings.Fields(r.Roles), r.Text, time.UnixMilli(r.At)}
		lines, stored = append(lines, l), append(stored, storedLine{l, r.Seq})
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return "", nil, fmt.Errorf("encoding what was overheard: %w", err)
	}
	return string(text), lines, nil
}

// newest leaves out the oldest lines that are too many together.
func newest(rows []inbounddb.Line) []inbounddb.Line {
	first, size := len(rows), 0
	for first > 0 && size+len(rows[first-1].Text) <= maxLines {
		first--
		size += len(rows[first].Text)
	}
	return rows[first:]
}

// readHistory returns the lines that are stored with a message. Damage in what is only context is no
// reason not to answer.
func readHistory(stored string) []HistoryLine {
	var out []HistoryLine
	for _, l := range readStored(stored) {
		out = append(out, l.HistoryLine)
	}
	return out
}

func readStored(stored string) []storedLine {
	var lines []storedLine
	if stored == "" || json.Unmarshal([]byte(stored), &lines) != nil {
		return nil
	}
	return lines
}

// giveBack returns what a message took to the buffer, where it stands before what came since.
func giveBack(ctx context.Context, q *inbounddb.Queries, row inbounddb.Row) error {
	var m chat.Inbound
	if err := json.Unmarshal([]byte(row.Payload), &m); err != nil {
		return nil // nobody knows what it was
	}
	place := placeOf(writtenAt(m))
	for _, l := range readStored(row.History) {
		err := q.PutLine(ctx, place, inbounddb.Line{
			Seq: l.Seq, Message: l.ID, Sender: l.Sender.ID, Name: l.Sender.Name, Bot: l.Sender.Bot, Roles: strings.Join(l.Roles, " "),
			Text: l.Text, At: l.At.UnixMilli(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writtenAt returns where a message was written: the root of a thread stands outside of it.
func writtenAt(m chat.Inbound) chat.Address {
	a := m.Address
	if a.Kind == chat.Room && a.Thread == m.ID {
		a.Thread = ""
	}
	return a
}
