package inbound

import (
	"context"
	"encoding/json"
	"fmt"

	"understudy/chat"
)

// Waits is a message that is stored and not dealt with yet.
type Waits struct {
	In   chat.Inbound
	Turn string // that will answer it, unless it joins another one
}

// Waiting returns the messages of a conversation that are not dealt with yet, in order of arrival: to show
// them where nothing else remembers them. Only the channel, the account and the conversation of the
// address count.
func (p *Pipeline) Waiting(ctx context.Context, at chat.Address) ([]Waits, error) {
	rows, err := p.journal.q.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("open messages: %w", err)
	}
	var out []Waits
	for _, row := range rows {
		if row.Channel != at.Channel || row.Account != at.Account || row.Conversation != at.Conversation {
			continue
		}
		w := Waits{Turn: TurnID(row.Group())}
		if json.Unmarshal([]byte(row.Payload), &w.In) == nil { // else its turn finds out
			out = append(out, w)
		}
	}
	return out, nil
}
