package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/session/internal/sessiondb"
)

// Kind is what a transcript entry is.
type Kind string

// The kinds.
const (
	KindMessage    Kind = "message"
	KindCompaction Kind = "compaction" // a summary that stands for everything before FirstKept
	KindNote       Kind = "note"       // for people; never sent to a model
)

// Entry is one row of a transcript.
type Entry struct {
	Seq     int64 // given by Append, rising from 1 within a transcript
	Kind    Kind
	Message llm.Message  // of a compaction: the summary
	Model   llm.ModelRef // that wrote it; zero for people and tools
	Usage   *llm.Usage   // of the request that brought it; nil = none
	At      time.Time
	// Turn is the id of the turn that left it; "" = unknown. FinishTurn and AppendOnce set it.
	Turn string

	// Of a compaction: the first entry that still is sent beside the summary, and how large the
	// context was before.
	FirstKept    int64
	TokensBefore int
}

// content is the stored form of an entry.
type content struct {
	llm.Message
	Turn         string `json:"turn,omitempty"`
	FirstKept    int64  `json:"firstKeptSeq,omitempty"`
	TokensBefore int    `json:"tokensBefore,omitempty"`
}

// Append adds entries to the transcript of a session id, all or none. Transcripts are never
// changed; a turn that a reset overtook still writes to the one it began in.
func (s *Store) Append(ctx context.Context, sessionID string, entries []Entry) error {
	rows, err := s.entryRows(sessionID, entries)
	if err != nil {
		return err
	}
	if err := s.tx(ctx, func(q *sessiondb.Queries) error { return appendRows(ctx, q, rows) }); err != nil {
		return fmt.Errorf("appending to transcript %s: %w", sessionID, err)
	}
	return nil
}

// entryRows encodes entries; it is done before the transaction, which should be short.
func (s *Store) entryRows(sessionID string, entries []Entry) ([]sessiondb.AppendEntryParams, error) {
	rows := make([]sessiondb.AppendEntryParams, len(entries))
	for i, e := range entries {
		row, err := s.entryRow(sessionID, e)
		if err != nil {
			return nil, fmt.Errorf("transcript %s: %w", sessionID, err)
		}
		rows[i] = row
	}
	return rows, nil
}

// appendRows writes rows, all of one transcript, behind its last one.
func appendRows(ctx context.Context, q *sessiondb.Queries, rows []sessiondb.AppendEntryParams) error {
	if len(rows) == 0 {
		return nil
	}
	last, err := q.LastSeq(ctx, rows[0].SessionID)
	if err != nil {
		return err
	}
	for i, row := range rows {
		row.Seq = last + int64(i) + 1
		if err := q.AppendEntry(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) entryRow(sessionID string, e Entry) (sessiondb.AppendEntryParams, error) {
	text, err := json.Marshal(content{Message: e.Message, Turn: e.Turn, FirstKept: e.FirstKept, TokensBefore: e.TokensBefore})
	if err != nil {
		return sessiondb.AppendEntryParams{}, fmt.Errorf("content: %w", err)
	}
	var usage []byte
	if e.Usage != nil {
		if usage, err = json.Marshal(e.Usage); err != nil {
			return sessiondb.AppendEntryParams{}, fmt.Errorf("usage: %w", err)
		}
	}
	if e.At.IsZero() {
		e.At = s.deps.Clock.Now()
	}
	return sessiondb.AppendEntryParams{
		SessionID: sessionID, Role: string(e.Message.Role), Kind: string(e.Kind), ContentJson: string(text),
		ModelRef: refText(e.Model), UsageJson: string(usage), At: millis(e.At),
	}, nil
}

// Load returns what a model is shown of a transcript: the last compaction first, if there is one, then
// the messages it kept. Notes are not read: nobody could say how many there are.
func (s *Store) Load(ctx context.Context, sessionID string) ([]Entry, error) {
	var rows []sessiondb.Transcript
	err := s.db.Read(ctx, func(tx *sqlite.Tx) error {
		q, from := sessiondb.New(tx), int64(0)
		summary, err := q.LastCompaction(ctx, sessionID)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		default:
			entry, err := fromEntryRow(summary)
			if err != nil {
				return err
			}
			rows, from = append(rows, summary), entry.FirstKept
		}
		kept, err := q.MessagesFrom(ctx, sessiondb.MessagesFromParams{SessionID: sessionID, Seq: from})
		rows = append(rows, kept...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("loading transcript %s: %w", sessionID, err)
	}
	return fromEntryRows(rows)
}

// Page returns at most limit entries before seq (0 = the end), oldest first, compactions included:
// what a person scrolls through.
func (s *Store) Page(ctx context.Context, sessionID string, before int64, limit int) ([]Entry, error) {
	if before <= 0 {
		before = 1<<63 - 1
	}
	rows, err := s.query.EntriesBefore(ctx, sessiondb.EntriesBeforeParams{SessionID: sessionID, Seq: before, Most: int64(limit)})
	if err != nil {
		return nil, fmt.Errorf("reading transcript %s: %w", sessionID, err)
	}
	slices.Reverse(rows)
	return fromEntryRows(rows)
}

func fromEntryRows(rows []sessiondb.Transcript) ([]Entry, error) {
	entries := make([]Entry, len(rows))
	for i, r := range rows {
		var err error
		if entries[i], err = fromEntryRow(r); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func fromEntryRow(r sessiondb.Transcript) (Entry, error) {
	var c content
	if err := json.Unmarshal([]byte(r.ContentJson), &c); err != nil {
		return Entry{}, fmt.Errorf("transcript %s, entry %d: %w", r.SessionID, r.Seq, err)
	}
	e := Entry{
		Seq: r.Seq, Kind: Kind(r.Kind), Message: c.Message, Model: parseRef(r.ModelRef), At: fromMillis(r.At), Turn: c.Turn,
		FirstKept: c.FirstKept, TokensBefore: c.TokensBefore,
	}
	if r.UsageJson != "" {
		e.Usage = &llm.Usage{}
		if err := json.Unmarshal([]byte(r.UsageJson), e.Usage); err != nil {
			return Entry{}, fmt.Errorf("transcript %s, usage of entry %d: %w", r.SessionID, r.Seq, err)
		}
	}
	return e, nil
}

// Archived is a transcript that a reset ended.
type Archived struct {
	ID                 string
	StartedAt, EndedAt time.Time
}

// Begun returns when the first transcript of a key began; zero = it was never reset, so that its present
// one is the first.
func (s *Store) Begun(ctx context.Context, key string) (time.Time, error) {
	ms, err := s.query.FirstStarted(ctx, key)
	if err != nil {
		return time.Time{}, fmt.Errorf("archive of session %s: %w", key, err)
	}
	return fromMillis(ms), nil
}

// Archive returns the ended transcripts of a key, the newest first.
func (s *Store) Archive(ctx context.Context, key string, limit int) ([]Archived, error) {
	rows, err := s.query.ListArchive(ctx, sessiondb.ListArchiveParams{Key: key, Most: int64(limit)})
	if err != nil {
		return nil, fmt.Errorf("archive of session %s: %w", key, err)
	}
	list := make([]Archived, len(rows))
	for i, r := range rows {
		list[i] = Archived{ID: r.SessionID, StartedAt: fromMillis(r.StartedAt), EndedAt: fromMillis(r.EndedAt)}
	}
	return list, nil
}
