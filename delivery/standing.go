package delivery

import (
	"context"
	"encoding/json"
	"fmt"

	"understudy/channels"
)

// Standing is how a durable thing stands that was handed over with Send.
type Standing uint8

// The standings.
const (
	NotThere  Standing = iota // it is not in the outbox (any more)
	Waiting                   // it is on its way
	Delivered                 // the platform has all of it
	GivenUp                   // the platform does not take it, or not all of it
	Unsettled                 // it perhaps arrived, and is not repeated
)

// Standing tells how a thing stands, by the TurnID and Seq it was sent with, and the ids of the messages
// that are there.
func (s *Service) Standing(ctx context.Context, turnID string, seq int) (Standing, []string, error) {
	rows, err := s.store.q.OfTurn(ctx, turnID)
	if err != nil {
		return NotThere, nil, fmt.Errorf("standing of %s: %w", turnID, err)
	}
	for _, r := range rows {
		if r.Seq != seq {
			continue
		}
		var receipts []channels.Receipt
		if err := json.Unmarshal([]byte(r.Receipts), &receipts); err != nil {
			return NotThere, nil, fmt.Errorf("standing of %s: %w", turnID, err)
		}
		var ids []string
		for _, x := range receipts {
			ids = append(ids, x.IDs...)
		}
		switch r.State {
		case stateSent:
			return Delivered, ids, nil
		case stateFailed:
			return GivenUp, ids, nil
		case stateUnknown:
			return Unsettled, ids, nil
		}
		return Waiting, ids, nil
	}
	return NotThere, nil, nil
}
