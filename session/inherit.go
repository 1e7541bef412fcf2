package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Bequest is what a thread may take over from the conversation it belongs to: the last turns of it, whole,
// of at most so many bytes as they are stored.
type Bequest struct {
	From  string // session key
	Turns int
	Bytes int
}

// Inherit copies the end of another conversation into a session in which no person has said anything yet
// and which was never reset; any other one stays as it is, so that it happens once. What a summary stands
// for is not copied, and what the turns cost is not counted again.
func (s *Store) Inherit(ctx context.Context, key string, b Bequest) error {
	ses, err := s.Get(ctx, key)
	if err != nil || !ses.LastInteractionAt.IsZero() {
		return err
	}
	begun, err := s.Begun(ctx, ses.Key)
	if err != nil || !begun.IsZero() {
		return err
	}
	parent, err := s.Get(ctx, b.From)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	entries, err := s.Load(ctx, parent.ID)
	if err != nil {
		return err
	}
	list, err := s.bequeathed(entries, b)
	if err != nil || len(list) == 0 {
		return err
	}
	return s.AppendOnce(ctx, ses.Key, "inherited", list)
}

// bequeathed picks the newest turns that fit. Each keeps the name of its turn, or gets one.
func (s *Store) bequeathed(entries []Entry, b Bequest) ([]Entry, error) {
	var list []Entry
	starts, end, size := TurnStarts(entries), len(entries), 0
	for n, at := range slices.Backward(starts) {
		turn := ofTurn(fmt.Sprint("inherited-", n), entries[at:end])
		for i, e := range turn {
			row, err := s.entryRow("", e)
			if err != nil {
				return nil, err
			}
			size += len(row.ContentJson)
			turn[i].Usage = nil
		}
		if len(starts)-n > b.Turns || size > b.Bytes {
			break
		}
		list, end = append(turn, list...), at
	}
	return list, nil
}
