package delivery

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"understudy/channels"
)

// shipment is a parcel being delivered, with what was found out on the way.
type shipment struct {
	*parcel
	account *account
	slot    *Slot
	turn    *Turn   // nil = its turn is not running in this process
	preview preview // the preview that stands; its id is "" when none does
	stale   bool    // the preview is to be taken away once the answer stands
	plain   bool    // the channel rejected our markup
	recut   bool    // a part was cut smaller already
	unsure  bool    // some part was perhaps not delivered
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
	if s.speak(ctx, sh) != nil {
		return // the Service stops
	}
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
		sh.slot, sh.preview = sh.turn.slot, sh.turn.settle(ctx)
		sh.slot.Choose(sh.about.Chosen)
		return
	}
	sh.slot = s.separateSlot(ctx, sh)
	sh.slot.Choose(sh.about.Chosen)
	if sh.out.Replaces != "" && sh.account.editor != nil {
		sh.preview = preview{id: sh.out.Replaces, restored: true}
		return
	}
	if running || sh.out.TurnID == "" || sh.account.editor == nil {
		return
	}
	id, stream, err := s.store.previewOf(ctx, sh.out.TurnID)
	s.stored(err)
	if id == "" {
		return
	}
	sh.preview = preview{id: id, restored: true, grows: stream && sh.account.stream != nil, status: sh.account.set.Progress}
	if !sh.preview.status {
		sh.slot.Reserve(id)
	}
}

// separateSlot returns the slot for something that is not the answer of a turn that runs here. When
// the turn it belongs to has been answered, or its preview has the slot, it is taken.
func (s *Service) separateSlot(ctx context.Context, sh *shipment) *Slot {
	slot := NewSlot(sh.account.rule(sh.out.To, sh.out.ReplyTo, sh.out.Via, sh.about.Batched))
	if sh.out.TurnID == "" || !sh.out.Class.TakesSlot() || len(sh.receipts) > 0 {
		return slot
	}
	s.mu.Lock()
	t := s.turns[sh.out.TurnID]
	s.mu.Unlock()
	if t != nil && destKey(t.to) == destKey(sh.out.To) {
		if t.slot.Owner() == "" && !t.slot.Consumed() {
			return t.slot
		}
		slot.Consume(sh.out.Class, t.slot.Owner())
		return slot
	}
	earlier, err := s.store.answered(ctx, sh.parcel)
	s.stored(err)
	if earlier {
		slot.Consume(sh.out.Class, "")
	}
	return slot
}

// ship sends what is left of a shipment, in order. It returns nil, a *channels.SendError or
// errStopped.
func (s *Service) ship(ctx context.Context, sh *shipment) error {
	if sh.preview.id != "" {
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

// shipPart sends the next message.
func (s *Service) shipPart(ctx context.Context, sh *shipment) error {
	var receipt channels.Receipt
	p := patience{
		until: s.heldUntil(sh.parcel), harmless: sh.account.traits.Idempotent,
		parked: func(wait time.Duration) { s.parked(sh, wait) },
	}
	if i := len(sh.receipts); sh.parts[i].Speech && (sh.parts[i].captioned() || i+1 < len(sh.parts)) {
		if until := s.clock.Now().Add(voiceFor); until.Before(p.until) {
			p.until = until
		}
	}
	err := s.insist(ctx, p, func(ctx context.Context) (err error) {
		receipt, err = s.sendOnce(ctx, sh)
		return err
	})
	if errors.Is(err, errStopped) {
		return err
	}
	if e := verdict(err); e != nil {
		if e.Verdict == channels.Refused && s.unchoose(ctx, sh) {
			return nil
		}
		again, e := s.adapt(ctx, sh, e)
		switch {
		case again:
			return nil
		case sh.parts[len(sh.receipts)].Speech && e.Verdict != channels.Unsure:
			s.mute(ctx, sh, e)
			return nil
		case sh.soundNext(): // it was perhaps heard, and nothing is lost with it
			s.log.Info("speech not delivered", "channel", sh.out.To.Channel, "turn", sh.out.TurnID, "code", e.Code)
		case e.Verdict != channels.Unsure:
			return e
		default:
			sh.unsure = true
			s.log.Warn("delivery unknown", "channel", sh.out.To.Channel, "class", sh.out.Class.String(), "code", e.Code,
				"turn", sh.out.TurnID, "part", len(sh.receipts), "error", e.Err)
		}
	}
	id := ""
	if len(receipt.IDs) > 0 {
		id = receipt.IDs[0]
	}
	sh.receipts, sh.noFile = append(sh.receipts, receipt), false
	s.consume(sh, id)
	if len(sh.receipts) < len(sh.parts) { // the last one is stored with the end
		s.stored(s.store.progress(ctx, sh.parcel, false))
	}
	return nil
}

// unchoose drops the message that the model chose to refer to, which it may have invented, and
// reports whether the next message would have referred to it.
func (s *Service) unchoose(ctx context.Context, sh *shipment) bool {
	if sh.about.Chosen == "" || sh.slot.Reference(sh.out.Class, len(sh.receipts) > 0) == "" {
		return false
	}
	sh.about.Chosen = ""
	sh.slot.Choose("")
	s.stored(s.store.recut(ctx, sh.parcel))
	return true
}

// parked tells the operator that a conversation rests because its platform wants it.
func (s *Service) parked(sh *shipment, wait time.Duration) {
	s.log.Warn("delivery parked", "channel", sh.out.To.Channel, "class", sh.out.Class.String(), "turn", sh.out.TurnID,
		"pause_seconds", int(wait.Seconds()), "given_up_at", s.heldUntil(sh.parcel).UTC().Format(time.RFC3339))
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
	e := s.reached(ctx, sh.out.To, callSend, err)
	if e == nil {
		return receipt, nil
	}
	if e.Verdict != channels.Unsure || sh.account.traits.Idempotent && !e.Once {
		s.stored(s.store.release(ctx, sh.parcel))
	}
	return receipt, e
}

// piece makes the next message.
func (s *Service) piece(sh *shipment) channels.Piece {
	i := len(sh.receipts)
	p := sh.parts[i]
	out := channels.Piece{
		To: s.where(sh.out.To), Class: sh.out.Class, Text: p.Text, Plain: p.Plain, Media: p.Media, Buttons: p.Buttons,
		ReplyTo: sh.slot.Reference(sh.out.Class, i > 0), Via: sh.out.Via, For: sh.out.For, Key: sh.key(i),
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
	isFile := len(sh.parts[i].Media) > 0 && !sh.parts[i].Speech
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
		case sh.parts[i].Speech:
			return false, e
		case isFile && !sh.noFile:
			sh.noFile = true
			sh.parts[i] = sh.account.noFile(sh.parts[i].Media[0])
		case !isFile && !sh.recut && e.Verdict == channels.TooLong:
			sh.recut = true
			sh.parts = append(sh.parts[:i:i], sh.account.halved(sh.parts[i:])...)
		case !isFile && e.Verdict == channels.TooLong && !sh.plain && !blank(sh.parts[i].Plain): // it may be the markup
			sh.plain = true
			return true, e
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
	if sh.stale {
		s.erase(ctx, sh.account, sh.out, sh.preview)
	}
	if sh.turn != nil {
		if sh.slot == nil || !sh.slot.Consumed() {
			sh.turn.stage(stageSilent)
		}
		s.forget(sh.turn)
	}
	switch {
	case s.deps.Metrics == nil:
	case state == stateSent:
		s.deps.Metrics.Sent(sh.out.To, sh.out.Class)
	default:
		s.deps.Metrics.Failed(sh.out.To, sh.out.Class, code)
	}
}

// stored logs a failure to write down what has happened already: it cannot be undone, and the
// delivery goes on.
func (s *Service) stored(err error) {
	if err != nil {
		s.log.Error("writing the outbox", "error", err)
	}
}
