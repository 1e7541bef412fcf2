package inbound

import (
	"context"
	"fmt"
	"time"

	"understudy/inbound/internal/inbounddb"
)

// badReason begins the reason of events that could not be read.
const badReason = "bad: "

// Bad notes an event that its adapter cannot read (spec/chat.md §2.9), as one that failed, so that it is
// known what was passed over. Nothing of what it says is kept: nobody knows whose words these are, or
// whether they may talk to the bot. An event that is known already changes nothing.
func (p *Pipeline) Bad(ctx context.Context, a Account, eventKey, reason string) error {
	now := time.Now().UnixMilli()
	err := write(ctx, p.journal.db, func(q *inbounddb.Queries) error {
		isNew, err := q.PutKeys(ctx, []string{eventKey}, now)
		if err != nil || !isNew {
			return err
		}
		return q.InsertFailed(ctx, inbounddb.Row{
			EventKey: eventKey, Channel: a.Channel, Account: a.Name, Reason: cutTo(badReason+reason, maxReason), ReceivedAt: now,
		})
	})
	if err != nil {
		return fmt.Errorf("noting a bad event of %s: %w", a.Channel, err)
	}
	return nil
}
