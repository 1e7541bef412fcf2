package delivery

import (
	"context"
	"errors"
	"strings"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// replaceable reports whether the preview may become the first message (spec/chat.md §2.4): a text
// that refers to what the preview refers to.
func (sh *shipment) replaceable() bool {
	if sh.out.Class == chat.Error {
		return false
	}
	for i, p := range sh.parts {
		if len(p.Media) > 0 && (i == 0 || !p.Speech) {
			return false
		}
	}
	if sh.preview.restored {
		return sh.about.Chosen == ""
	}
	return sh.slot.Reference(sh.out.Class, false) == sh.preview.ref
}

// takePreview makes the preview the first message of the answer, or sees to it that it goes.
func (s *Service) takePreview(ctx context.Context, sh *shipment) error {
	if sh.preview.grows {
		if done, err := s.closeStream(ctx, sh); done || err != nil {
			return err
		}
	}
	switch {
	case sh.preview.status: // never the answer; it goes once that stands
		sh.stale = true
		return nil
	case len(sh.receipts) > 0, sh.parts[0].Speech:
		// An earlier process could not use it and began with a new message; or the answer begins with its
		// sound, and people shall have something to read until that is there.
		sh.stale = true
		sh.slot.Release()
		return nil
	case !sh.replaceable():
		s.erase(ctx, sh.account, sh.out, sh.preview)
		sh.slot.Release()
		return nil
	}
	return s.editPreview(ctx, sh)
}

// closeStream ends the stream that shows the answer. Done tells that it has become the first
// message; otherwise its message is a preview like any other now.
func (s *Service) closeStream(ctx context.Context, sh *shipment) (done bool, err error) {
	p := &sh.preview
	rest, whole := "", !p.restored && p.shown != "" && sh.replaceable() && len(sh.parts[0].Buttons) == 0
	if whole {
		rest, whole = strings.CutPrefix(sh.account.grown(sh.parts[0].Source), p.shown)
	}
	if whole && rest != "" {
		if s.clock.Sleep(ctx, p.next.Sub(s.clock.Now())) != nil {
			return false, errStopped
		}
		if e := sh.turn.append(ctx, p.id, rest); e != nil {
			s.log.Info("stream failed", "channel", sh.out.To.Channel, "turn", sh.out.TurnID, "code", e.Code)
			whole = false
		}
	}
	p.grows = false
	err = s.stopStream(ctx, sh.out.TurnID, growing{sh.account, sh.out.To, p.id})
	switch {
	case errors.Is(err, errStopped):
		return false, err // the next start makes the message what it should be
	case err != nil || !whole:
		return false, nil
	}
	s.tookPreview(ctx, sh)
	return true, nil
}

// tookPreview takes in that the preview has become the first message.
func (s *Service) tookPreview(ctx context.Context, sh *shipment) {
	sh.receipts = append(sh.receipts, channels.Receipt{IDs: []string{sh.preview.id}})
	s.consume(sh, sh.preview.id)
	s.stored(s.store.progress(ctx, sh.parcel, true))
}

// consume gives the slot to the message that was just sent.
func (s *Service) consume(sh *shipment, id string) {
	if sh.slot.Consume(sh.out.Class, id) && sh.turn != nil {
		sh.turn.answered(sh.out.Class)
	}
}

// editPreview edits the preview into the first message.
func (s *Service) editPreview(ctx context.Context, sh *shipment) error {
	for {
		err := s.insist(ctx, patience{tries: roundTries, until: s.heldUntil(sh.parcel), most: longPause, harmless: true},
			func(ctx context.Context) error { return s.editOnce(ctx, sh) })
		switch {
		case err == nil:
			s.tookPreview(ctx, sh)
			return nil
		case errors.Is(err, errStopped):
			return err
		}
		again, e := s.adapt(ctx, sh, verdict(err))
		switch {
		case again:
			continue
		case e.Verdict == channels.Missing:
			s.stored(s.store.dropPreview(ctx, sh.out.TurnID))
		default:
			sh.stale = true
		}
		sh.slot.Release()
		if e.Verdict == channels.Gone {
			return e
		}
		return nil
	}
}

// editOnce makes one attempt to turn the preview into the first message. Doing it twice does no
// harm, so a crash in between leaves a row that is simply done again.
func (s *Service) editOnce(ctx context.Context, sh *shipment) error {
	if wait := s.held(sh.out.To, callEdit); wait > 0 {
		return &channels.SendError{Verdict: channels.Retry, After: wait, Code: "held", Err: errHeld}
	}
	if err := s.store.claim(ctx, sh.parcel, sh.preview.id, s.clock.Now()); err != nil {
		return &channels.SendError{Verdict: channels.Retry, Code: "store", Err: err}
	}
	call, cancel := s.begun(ctx, textTimeout)
	defer cancel()
	e := s.heard(sh.out.To, callEdit, sh.account.editor.Edit(call, s.where(sh.out.To), sh.preview.id, s.piece(sh)))
	if e == nil {
		return nil
	}
	s.stored(s.store.release(ctx, sh.parcel))
	return e
}

// erase takes a preview that must not stay away, as well as it can, and forgets it.
func (s *Service) erase(ctx context.Context, a *account, o chat.Outbound, p preview) {
	if p.grows && errors.Is(s.stopStream(ctx, o.TurnID, growing{a, o.To, p.id}), errStopped) {
		return // the next start does it
	}
	err := s.insist(ctx, patience{tries: roundTries, until: s.clock.Now().Add(time.Minute), harmless: true},
		func(ctx context.Context) error {
			call, cancel := s.begun(ctx, textTimeout)
			defer cancel()
			if e := s.heard(o.To, callDelete, a.editor.Delete(call, s.where(o.To), p.id)); e != nil {
				return e
			}
			return nil
		})
	if errors.Is(err, errStopped) {
		return
	}
	if e := verdict(err); e != nil && e.Verdict != channels.Missing {
		s.log.Info("preview left standing", "channel", o.To.Channel, "turn", o.TurnID, "code", e.Code)
	}
	s.stored(s.store.dropPreview(ctx, o.TurnID))
}
