package inbound

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/chat"
	"understudy/inbound/internal/inbounddb"
)

// Apology is said, at most once for a message, when a restart makes it impossible to answer or to
// know whether it was answered: the documented exception to "answered exactly once" (spec/chat.md
// §7.8).
const Apology = "⚠️ I was restarted while answering. Please send it again."

// ApologySeq is the chat.Outbound.Seq of an apology, beyond every part of an answer.
const ApologySeq = 1 << 20

// maxContinuations is how often a message is taken up again after interrupted turns.
const maxContinuations = 3

// Recover takes up what an earlier process left open, in order of arrival, and lets Accept begin:
// messages that no turn has begun for are handled, or wait again for what belongs to them, interrupted
// ones are continued where nothing was said, and their senders get the apology otherwise. Call it
// once, when delivery has recovered and the Handler can work, before the adapters run.
func (p *Pipeline) Recover(ctx context.Context) error {
	rows, err := p.journal.q.Open(ctx)
	if err != nil {
		return fmt.Errorf("recovering the journal: %w", err)
	}
	for _, group := range groups(rows) {
		if err := p.recover(ctx, group); err != nil {
			return fmt.Errorf("recovering the journal: %w", err)
		}
	}
	p.recovered.Store(true)
	return nil
}

// groups puts rows together that are answered as one, in order of arrival.
func groups(rows []inbounddb.Row) [][]inbounddb.Row {
	var out [][]inbounddb.Row
	at := map[int64]int{}
	for _, row := range rows {
		i, known := at[row.Group()]
		if !known {
			i = len(out)
			at[row.Group()] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], row)
	}
	return out
}

func (p *Pipeline) recover(ctx context.Context, rows []inbounddb.Row) error {
	first := rows[0]
	seq := first.Group()
	m, err := p.message(ctx, rows)
	switch {
	case errors.Is(err, errUnreadable):
		return p.unreadable(ctx, seq, err)
	case err != nil:
		return err
	}
	admitted, err := p.stillAdmitted(ctx, m)
	if err != nil {
		return err
	}
	if !admitted {
		return p.journal.fail(ctx, seq, "not admitted any more")
	}
	answer := AnswerNone
	if first.State == inbounddb.Dispatched {
		if answer, err = p.deps.Answer(ctx, TurnID(seq)); err != nil {
			return err
		}
	}
	switch {
	case answer == AnswerSent:
		if err := p.Participated(ctx, seq); err != nil {
			return err
		}
		return p.Done(ctx, seq)
	case answer == AnswerUnknown:
		return p.apologise(ctx, m, "the answer was perhaps sent")
	case age(m.In, first) > p.settings.Load().catchUp(m.In.Address).MaxAge:
		return p.apologise(ctx, m, "too old")
	case m.Attempts > maxContinuations:
		return p.apologise(ctx, m, "interrupted too often")
	}
	p.log.Info("message taken up again", "channel", m.In.Address.Channel, "seq", seq, "attempts", m.Attempts)
	return p.takeUp(ctx, m, len(rows))
}

// age is how long ago a message was written, or came if that is longer: a platform may have held it back
// for a while.
func age(m chat.Inbound, row inbounddb.Row) time.Duration {
	came := time.UnixMilli(row.ReceivedAt)
	if m.At.Before(came) && !m.At.IsZero() {
		came = m.At
	}
	return time.Since(came)
}

// takeUp hands a message on that an earlier process left. One that no turn has begun for may still be
// incomplete.
func (p *Pipeline) takeUp(ctx context.Context, m Message, parts int) error {
	x := p.part(m.In, m.In.Album == "" && p.isCommand(m.In.Text))
	if m.Attempts > 0 {
		x.window = 0
	}
	if _, err := p.collect.join(ctx, x); err != nil { // nothing overtakes what waits
		return err
	}
	if !p.collect.open(ctx, m.Seq, parts, x) {
		p.give(ctx, m)
	}
	return nil
}

// stillAdmitted asks again, because the rules or an approval may have changed.
func (p *Pipeline) stillAdmitted(ctx context.Context, m Message) (bool, error) {
	s, err := p.standing(ctx, m.In)
	return p.rules(m.In.Address).Decide(m.In, s).Verdict == Admit, err
}

// apologise ends a message without an answer and tells its sender.
func (p *Pipeline) apologise(ctx context.Context, m Message, why string) error {
	p.log.Warn("message not answered after a restart", "channel", m.In.Address.Channel, "seq", m.Seq, "reason", why)
	p.sendApology(ctx, chat.Outbound{To: m.In.Address, ReplyTo: m.In.ID, TurnID: TurnID(m.Seq)})
	return p.journal.fail(ctx, m.Seq, why)
}

func (p *Pipeline) sendApology(ctx context.Context, o chat.Outbound) {
	o.Class, o.Markdown, o.Seq = chat.Error, Apology, ApologySeq
	if err := p.deps.Send(ctx, o); err != nil {
		p.log.Error("apology not sent", "channel", o.To.Channel, "turn", o.TurnID, "error", err)
	}
}

// Uncertain is to be told of every answer of which delivery cannot know, after a restart, whether
// it arrived. If it belongs to a message of the journal, its sender gets the apology, once.
func (p *Pipeline) Uncertain(ctx context.Context, o chat.Outbound) {
	seq, ok := turnSeq(o.TurnID)
	if !ok || o.Seq == ApologySeq {
		return
	}
	p.sendApology(ctx, chat.Outbound{To: o.To, ReplyTo: o.ReplyTo, TurnID: o.TurnID})
	if err := p.journal.fail(ctx, seq, "the answer was perhaps sent"); err != nil {
		p.log.Error("message not ended in the journal", "seq", seq, "error", err)
	}
}
