package inbound

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"understudy/chat"
	"understudy/inbound/internal/inbounddb"
)

// maxFormer bounds how many ids of one conversation count.
const maxFormer = 8

// moves are the conversations that have a new id (a Telegram group that became a supergroup), by that
// id. There are few of them ever.
type moves struct {
	mu   sync.RWMutex
	from map[inbounddb.Place]string
}

// readMoves reads what was stored.
func readMoves(ctx context.Context, q *inbounddb.Queries) (*moves, error) {
	rows, err := q.Moves(ctx)
	if err != nil {
		return nil, fmt.Errorf("moved conversations: %w", err)
	}
	x := &moves{from: map[inbounddb.Place]string{}}
	for _, r := range rows {
		x.from[inbounddb.Place{Channel: r.Channel, Account: r.Account, Conversation: r.Conversation}] = r.Former
	}
	return x, nil
}

// former returns the ids that a conversation had before, the latest first.
func (x *moves) former(a chat.Address) (list []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	place := inbounddb.Place{Channel: a.Channel, Account: a.Account, Conversation: a.Conversation}
	for len(list) < maxFormer {
		id, ok := x.from[place]
		if !ok || id == a.Conversation || slices.Contains(list, id) {
			break
		}
		list = append(list, id)
		place.Conversation = id
	}
	return list
}

func (x *moves) put(m inbounddb.Move) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.from[inbounddb.Place{Channel: m.Channel, Account: m.Account, Conversation: m.Conversation}] = m.Former
}

// Former returns the ids that a conversation had before, the latest first; nil = none.
func (p *Pipeline) Former(a chat.Address) []string { return p.moves.former(a) }

// Moved tells that a conversation has a new id. The rules that name the old one hold for it from now on,
// over restarts, and what was overheard there, its threads and its marks go along. It reports whether
// that is news.
func (p *Pipeline) Moved(ctx context.Context, from chat.Address, conversation string) (news bool, err error) {
	m := inbounddb.Move{Channel: from.Channel, Account: from.Account, Conversation: conversation, Former: from.Conversation}
	if m.Conversation == "" || m.Conversation == m.Former {
		return false, nil
	}
	err = write(ctx, p.journal.db, func(q *inbounddb.Queries) (err error) {
		if news, err = q.PutMove(ctx, m, time.Now().UnixMilli()); err != nil || !news {
			return err
		}
		return q.MovePlaces(ctx, m)
	})
	if err != nil {
		return false, fmt.Errorf("moving a conversation: %w", err)
	}
	if news {
		p.moves.put(m)
	}
	return news, nil
}
