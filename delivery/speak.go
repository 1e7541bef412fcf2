package delivery

import (
	"cmp"
	"context"
	"slices"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/delivery/markup"
)

// speakTimeout is how long an answer waits for its sound.
const speakTimeout = 90 * time.Second

// voiceFor is how long a voice note in front of a text is tried before the text goes without it.
const voiceFor = time.Minute

// speak adds the sound of an answer to a shipment of which nothing was sent yet (spec/chat.md §4.5).
// Without it the answer is text only. It returns errStopped or nil.
func (s *Service) speak(ctx context.Context, sh *shipment) error {
	if s.deps.Speak == nil || !sh.out.Class.Speakable() || sh.about.Spoken || len(sh.receipts) > 0 || sh.hasMedia() {
		return nil
	}
	if sh.turn != nil && sh.out.Speech != nil {
		sh.turn.records()
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
		sh.parts = sh.account.spoken(sh.parts, *sound)
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

// spoken puts the sound of an answer with its texts. A voice note comes first, and a text that is short
// enough is its caption, where the channel has that (channels.Traits.VoiceCaption); else it comes last.
func (a *account) spoken(texts []part, sound chat.Attachment) []part {
	voice := part{Media: []chat.Attachment{sound}, Speech: true}
	most := a.traits.VoiceCaption
	switch {
	case most == 0 || !sound.Voice:
		return append(texts, voice)
	case len(texts) == 1 && markup.Units(cmp.Or(texts[0].Plain, texts[0].Text)) <= most:
		both := texts[0]
		both.Media, both.Speech = voice.Media, true
		return []part{both}
	}
	return append([]part{voice}, texts...)
}

// captioned reports whether a part is a sound that carries the text.
func (p part) captioned() bool { return p.Speech && p.Text+p.Plain != "" }

// mute goes on without the sound that could not be delivered as the next message, which is a voice note,
// perhaps with the text as its caption. Nothing of the text is lost: a caption that is too long stands
// alone behind the voice note, any other is sent without it.
func (s *Service) mute(ctx context.Context, sh *shipment, e *channels.SendError) {
	i := len(sh.receipts)
	text := sh.parts[i]
	switch {
	case !text.captioned():
		sh.parts = slices.Delete(sh.parts, i, i+1)
		s.log.Info("speech not delivered", "channel", sh.out.To.Channel, "turn", sh.out.TurnID, "code", e.Code)
	case e.Verdict == channels.TooLong:
		voice := part{Media: text.Media, Speech: true}
		text.Media, text.Speech = nil, false
		sh.parts = slices.Replace(sh.parts, i, i+1, voice, text)
	default:
		sh.parts[i].Media, sh.parts[i].Speech = nil, false
		s.log.Info("speech not delivered", "channel", sh.out.To.Channel, "turn", sh.out.TurnID, "code", e.Code)
	}
	s.stored(s.store.recut(ctx, sh.parcel))
}

// soundNext reports whether the next message is the sound of an answer, and nothing but that.
func (p *parcel) soundNext() bool {
	i := len(p.receipts)
	return i < len(p.parts) && p.parts[i].Speech && !p.parts[i].captioned()
}
