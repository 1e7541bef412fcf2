package delivery

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// shipment is a parcel being delivered, with what was found out on the way.
type shipment struct {
	*parcel
	account *account
	slot    *Slot
	turn    *Turn  // nil = its turn is not running in this process
	preview string // the preview that stands; "" = none
	stale   string // a preview to take away once the answer stands
	plain   bool   // the channel rejected our markup
	recut   bool   // a part was cut smaller already
	unsure  bool   // some part was perhaps not delivered
	// noFile tells that the file of the next part is replaced by a note already.
	noFile bool
}

// deliver sends a stored row and gives it its last state, unless the Service stops before.
func (s *Service) deliver(ctx context.Context, id int64) {
	p, err := s.load(ctx, id)
	switch {
	case p == nil:
		return
	case err != nil:
		s.log.Error("outbox row cannot be read", "row", id, "error", err)
		s.stored(s.store.end(ctx, p, stateFailed, "unreadable", s.clock.Now()))
		return
	case p.state != statePending:
		return
	}
	sh := &shipment{parcel: p}
	t, answers := s.running(p)
	if answers {
		sh.turn = t
	}
	a, ok := s.account(p.out.To)
	if !ok {
		s.conclude(ctx, sh, &channels.SendError{Verdict: channels.Gone, Code: "no_channel", Err: ErrNoChannel})
		return
	}
	sh.account = a
	s.prepare(ctx, sh, t != nil)
	s.conclude(ctx, sh, s.ship(ctx, sh))
}

// load reads a row and insists: what waits behind it must not go first. It returns nil when the
// Service stops or the row is gone; an error with a row tells that the row makes no sense.
func (s *Service) load(ctx context.Context, id int64) (*parcel, error) {
	for {
		p, err := s.store.get(ctx, id)
		if p != nil || err == nil || errors.Is(err, sql.ErrNoRows) {
			return p, err
		}
		s.log.Error("reading the outbox", "error", err)
		if s.clock.Sleep(ctx, roundPause) != nil {
			return nil, errStopped
		}
	}
}

// prepare finds the slot and the preview of a shipment. Running tells that its turn runs in this
// process: then only the turn's own answer may have the preview.
func (s *Service) prepare(ctx context.Context, sh *shipment, running bool) {
	if sh.turn != nil {
		sh.slot, sh.preview = sh.turn.slot, sh.turn.settle()
		return
	}
	sh.slot = NewSlot(sh.account.rule(sh.out.To, sh.out.ReplyTo))
	if running || sh.out.TurnID == "" || sh.account.editor == nil {
		return
	}
	id, err := s.store.previewOf(ctx, sh.out.TurnID)
	s.stored(err)
	if sh.preview = id; id != "" {
		sh.slot.Reserve(id)
	}
}

// ship sends what is left of a shipment, in order. It returns nil, a *channels.SendError or
// errStopped.
func (s *Service) ship(ctx context.Context, sh *shipment) error {
	if sh.preview != "" && len(sh.receipts) == 0 {
		if err := s.takePreview(ctx, sh); err != nil {
			return err
		}
	}
	for len(sh.receipts) < len(sh.parts) {
		if err := s.shipPart(ctx, sh); err != nil {
			return err
		}
	}
	return nil
}

// heldUntil returns when a durable thing is given up while its platform is away; a time during which
// the bot itself was away does not count.
func (s *Service) heldUntil(p *parcel) time.Time {
	if p.created.Before(s.began) {
		return s.began.Add(holdFor)
	}
	return p.created.Add(holdFor)
}

// replaceable reports whether the preview may become the first message (spec/chat.md §2.4).
func (sh *shipment) replaceable() bool {
	if sh.out.Class == chat.Error {
		return false
	}
	for _, p := range sh.parts {
		if len(p.Media) > 0 {
			return false
		}
	}
	return true
}

// takePreview makes the preview the first message of the answer, or sees to it that it goes.
func (s *Service) takePreview(ctx context.Context, sh *shipment) error {
	if !sh.replaceable() {
		s.erase(ctx, sh.account, sh.out, sh.preview)
		sh.slot.Release()
		return nil
	}
	for {
		err := s.insist(ctx, patience{tries: roundTries, until: s.heldUntil(sh.parcel), harmless: true},
			func(ctx context.Context) error { return s.editOnce(ctx, sh) })
		switch {
		case err == nil:
			sh.receipts = append(sh.receipts, channels.Receipt{IDs: []string{sh.preview}})
			sh.slot.Consume(sh.out.Class, sh.preview)
			s.stored(s.store.progress(ctx, sh.parcel, true))
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
			sh.stale = sh.preview
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
	if err := s.store.claim(ctx, sh.parcel, sh.preview, s.clock.Now()); err != nil {
		return &channels.SendError{Verdict: channels.Retry, Code: "store", Err: err}
	}
	call, cancel := s.begun(ctx, textTimeout)
	defer cancel()
	err := sh.account.editor.Edit(call, s.where(sh.out.To), sh.preview, s.piece(sh))
	if err != nil {
		s.stored(s.store.release(ctx, sh.parcel))
	}
	return err
}

// shipPart sends the next message.
func (s *Service) shipPart(ctx context.Context, sh *shipment) error {
	var receipt channels.Receipt
	err := s.insist(ctx, patience{until: s.heldUntil(sh.parcel), harmless: sh.account.traits.Idempotent},
		func(ctx context.Context) (err error) {
			receipt, err = s.sendOnce(ctx, sh)
			return err
		})
	if errors.Is(err, errStopped) {
		return err
	}
	if e := verdict(err); e != nil {
		again, e := s.adapt(ctx, sh, e)
		switch {
		case again:
			return nil
		case e.Verdict != channels.Unsure:
			return e
		}
		sh.unsure = true
		s.log.Warn("delivery unknown", "channel", sh.out.To.Channel, "class", sh.out.Class.String(), "code", e.Code,
			"turn", sh.out.TurnID, "part", len(sh.receipts), "error", e.Err)
	}
	id := ""
	if len(receipt.IDs) > 0 {
		id = receipt.IDs[0]
	}
	sh.receipts, sh.noFile = append(sh.receipts, receipt), false
	sh.slot.Consume(sh.out.Class, id)
	if len(sh.receipts) < len(sh.parts) { // the last one is stored with the end
		s.stored(s.store.progress(ctx, sh.parcel, false))
	}
	return nil
}

// sendOnce makes one attempt to send the next message.
func (s *Service) sendOnce(ctx context.Context, sh *shipment) (channels.Receipt, error) {
	if err := s.await(ctx, sh.account, sh.out.To); err != nil {
		return channels.Receipt{}, err
	}
	if err := s.store.claim(ctx, sh.parcel, "", s.clock.Now()); err != nil {
		return channels.Receipt{}, &channels.SendError{Verdict: channels.Retry, Code: "store", Err: err}
	}
	piece := s.piece(sh)
	limit := textTimeout
	if len(piece.Media) > 0 {
		limit = mediaTimeout
	}
	call, cancel := s.begun(ctx, limit)
	defer cancel()
	receipt, err := sh.account.adapter.Send(call, piece)
	if e := verdict(err); e != nil && (e.Verdict != channels.Unsure || sh.account.traits.Idempotent) {
		s.stored(s.store.release(ctx, sh.parcel))
	}
	return receipt, err
}

// piece makes the next message.
func (s *Service) piece(sh *shipment) channels.Piece {
	i := len(sh.receipts)
	p := sh.parts[i]
	out := channels.Piece{
		To: s.where(sh.out.To), Class: sh.out.Class, Text: p.Text, Plain: p.Plain, Media: p.Media, Buttons: p.Buttons,
		ReplyTo: sh.slot.Reference(sh.out.Class, i > 0), Key: sh.key(i),
	}
	if sh.plain {
		out.Text = ""
	}
	return out
}

// adapt changes a shipment to what the channel wants and reports whether the next message is worth
// another attempt. Each change is made once; otherwise it returns the verdict.
func (s *Service) adapt(ctx context.Context, sh *shipment, e *channels.SendError) (bool, *channels.SendError) {
	i := len(sh.receipts)
	isFile := len(sh.parts[i].Media) > 0
	switch e.Verdict {
	case channels.Markups:
		if !sh.plain && !blank(sh.parts[i].Plain) {
			sh.plain = true
			return true, e
		}
	case channels.Moved:
		if s.relocate(ctx, sh.out.To, e.MovedTo) {
			return true, e
		}
	case channels.TooLong, channels.Refused:
		switch {
		case isFile && !sh.noFile:
			sh.noFile = true
			sh.parts[i] = sh.account.noFile(sh.parts[i].Media[0])
		case !isFile && !sh.recut && e.Verdict == channels.TooLong:
			sh.recut = true
			sh.parts = append(sh.parts[:i:i], sh.account.halved(sh.parts[i:])...)
		default:
			return false, e
		}
		s.stored(s.store.recut(ctx, sh.parcel))
		return i < len(sh.parts), e
	}
	return false, e
}

// conclude gives a shipment its last state, tells who wants to know, and ends its turn.
func (s *Service) conclude(ctx context.Context, sh *shipment, err error) {
	if errors.Is(err, errStopped) {
		return
	}
	state, code := stateSent, ""
	e := verdict(err)
	switch {
	case e != nil:
		state, code = stateFailed, e.Code
		s.log.Warn("delivery failed", "channel", sh.out.To.Channel, "class", sh.out.Class.String(), "code", e.Code,
			"turn", sh.out.TurnID, "parts_sent", len(sh.receipts), "error", e.Err)
	case sh.unsure:
		state, code = stateUnknown, "unsure"
		if s.deps.Unknown != nil {
			s.deps.Unknown(context.WithoutCancel(ctx), sh.out, false)
		}
	}
	s.stored(s.store.end(ctx, sh.parcel, state, code, s.clock.Now()))
	if sh.stale != "" {
		s.erase(ctx, sh.account, sh.out, sh.stale)
	}
	if sh.turn != nil {
		s.forget(sh.turn)
	}
	switch {
	case s.deps.Metrics == nil:
	case state == stateSent:
		s.deps.Metrics.Sent(sh.out.To.Channel, sh.out.Class)
	default:
		s.deps.Metrics.Failed(sh.out.To.Channel, sh.out.Class, code)
	}
}

// erase takes a message that must not stay away, as well as it can, and forgets the turn's preview.
func (s *Service) erase(ctx context.Context, a *account, o chat.Outbound, id string) {
	err := s.insist(ctx, patience{tries: roundTries, until: s.clock.Now().Add(time.Minute), harmless: true},
		func(ctx context.Context) error {
			call, cancel := s.begun(ctx, textTimeout)
			defer cancel()
			return a.editor.Delete(call, s.where(o.To), id)
		})
	if errors.Is(err, errStopped) {
		return // the next start does it
	}
	if e := verdict(err); e != nil && e.Verdict != channels.Missing {
		s.log.Info("preview left standing", "channel", o.To.Channel, "turn", o.TurnID, "code", e.Code)
	}
	s.stored(s.store.dropPreview(ctx, o.TurnID))
}

// stored logs a failure to write down what has happened already: it cannot be undone, and the
// delivery goes on.
func (s *Service) stored(err error) {
	if err != nil {
		s.log.Error("writing the outbox", "error", err)
	}
}
