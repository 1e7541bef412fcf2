package delivery

import (
	"context"
	"time"

	"understudy/chat"
)

// speakTimeout is how long an answer waits for its sound.
const speakTimeout = 90 * time.Second

// speak adds the sound of an answer to a shipment of which nothing was sent yet: its last message
// (spec/chat.md §4.5). Without it the answer is text only. It returns errStopped or nil.
func (s *Service) speak(ctx context.Context, sh *shipment) error {
	if s.deps.Speak == nil || !sh.out.Class.Speakable() || sh.about.Spoken || len(sh.receipts) > 0 || sh.hasMedia() {
		return nil
	}
	call, cancel := s.clock.WithTimeout(ctx, speakTimeout, errOverdue)
	defer cancel()
	sound, err := s.deps.Speak(call, sh.out)
	switch {
	case err != nil && ctx.Err() != nil:
		return errStopped
	case err != nil:
		s.log.Info("answer not spoken", "channel", sh.out.To.Channel, "turn", sh.out.TurnID, "error", err)
	case sound != nil:
		sh.parts = append(sh.parts, part{Media: []chat.Attachment{*sound}, Speech: true})
	}
	sh.about.Spoken = true
	s.stored(s.store.recut(ctx, sh.parcel))
	return nil
}

// hasMedia reports whether a shipment has files of its own.
func (sh *shipment) hasMedia() bool {
	for _, p := range sh.parts {
		if len(p.Media) > 0 {
			return true
		}
	}
	return false
}
