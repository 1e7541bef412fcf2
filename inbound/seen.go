package inbound

import (
	"context"
	"fmt"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/inbound/internal/inbounddb"
)

// participatesFor is how long an answer in a thread makes mentions superfluous there (spec/chat.md §2.7).
const participatesFor = 30 * 24 * time.Hour

// markOf says how far a place has been seen once a message is taken. active is when the bot was called
// there, zero = it was not. An interaction is no message of the place.
func markOf(m chat.Inbound, at chat.Address, active time.Time) inbounddb.Mark {
	k := inbounddb.Mark{Place: placeOf(at), Kind: string(at.Kind), Space: m.Space}
	if m.Via == "" {
		k.LastID, k.LastAt = m.ID, m.At.UnixMilli()
	}
	if !active.IsZero() {
		k.ActiveAt = active.UnixMilli()
	}
	return k
}

// Seen returns how far the conversations of an account have been seen, for its adapter.
func (p *Pipeline) Seen(channel, account string) channels.Seen {
	return seen{p.journal.q, channel, account}
}

// seen implements channels.Seen.
type seen struct {
	q                *inbounddb.Queries
	channel, account string
}

// Marks implements channels.Seen.
func (s seen) Marks(ctx context.Context, since time.Time, most int) ([]channels.Mark, error) {
	rows, err := s.q.Marks(ctx, s.channel, s.account, since.UnixMilli(), most)
	if err != nil {
		return nil, fmt.Errorf("marks of %s: %w", s.channel, err)
	}
	var out []channels.Mark
	for _, r := range rows {
		out = append(out, channels.Mark{
			Address: chat.Address{Channel: r.Channel, Account: r.Account, Conversation: r.Conversation, Thread: r.Thread, Kind: chat.Kind(r.Kind)},
			Space:   r.Space, LastID: r.LastID, At: time.UnixMilli(r.LastAt),
		})
	}
	return out, nil
}
