package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"understudy/channels/console"
	"understudy/chat"
	"understudy/commands"
	"understudy/cron/schedule"
	"understudy/reply"
)

// Texts of an offer. textOffer takes what to remind of and when; textOfferTyped the command that does it
// where there are no buttons; textNoOffer what is not reminded of.
const (
	textOffer      = "⏰ Shall I remind you: %s\nWhen: %s"
	textOfferTyped = "\nIf so, write `/remind %s %s`"
	textNoOffer    = "⏰ No reminder: %s"

	labelTake  = "Remind me"
	labelLeave = "No, thanks"
)

// Texts for presses that change nothing.
const (
	textOfferOver  = "This offer is over. `/remind` sets a reminder at any time."
	textOfferTaken = "This offer is answered already. `/remind list` shows your reminders."
	textOfferNot   = "Only whoever the promise was made to, or the bot owner, can decide that."
	textOfferLate  = "⏰ The time for this reminder is over, so I did not set it: %s"
	textOfferFault = "⚠️ That did not work because of a fault on my side; the log says which. Please press again."
)

// soonestOffer is how far away the time of an offer has to be: a person must have read it by then.
const soonestOffer = time.Minute

// offerTime reads when a model wants to remind somebody; see reply.Deps.OfferTime. A moment is fixed
// here, since "in two hours" counts from the promise and not from the press.
func (a *App) offerTime(agent, when string) (string, error) {
	now := a.opts.Clock.Now()
	s, err := schedule.Parse(when, schedule.Frame{Now: now, Zone: a.cfg().Agent(agent).Timezone, Named: true})
	if err != nil {
		return "", err
	}
	next, _ := s.Next(now)
	switch {
	case next.Sub(now) < soonestOffer && s.Once():
		return "", errors.New("when: this is too soon to ask somebody first; it must be at least a minute away")
	case s.Once():
		return next.Format(time.RFC3339), nil
	}
	return when, nil
}

// zoneName is the name of an agent's zone as a task stores it: "" for the host's own, which has none.
func (a *App) zoneName(agent string) string {
	if name := a.cfg().Agent(agent).Timezone.String(); name != "Local" {
		return name
	}
	return ""
}

// offer shows what the model has offered below its answer, as a message of its own, and returns how many
// replies that makes.
func (r *running) offer(ctx context.Context, out reply.Outcome) int {
	if out.Status != reply.Answered || out.Offer == nil {
		return 0
	}
	a, lead := r.a, r.jobs[0]
	o := offer{
		Agent: lead.agent, Session: lead.key, To: lead.in.Address, For: lead.in.Sender.ID, Turn: lead.turn, ReplyTo: lead.in.ID,
		Text: out.Offer.Text, When: out.Offer.When, Zone: a.zoneName(lead.agent),
	}
	if text := about(strings.Fields(o.Text)); text != "" {
		o.Text = text
	}
	say, err := a.offerMessage(ctx, o)
	if err == nil {
		err = a.delivery.Send(ctx, say)
	}
	if err != nil {
		a.log.ErrorContext(ctx, "offer_not_made", "turn", o.Turn, "error", err.Error())
		return 0
	}
	a.log.InfoContext(ctx, "offer_made", "turn", o.Turn, "agent", o.Agent)
	return 1
}

// offerMessage keeps an offer and returns the message that makes it.
func (a *App) offerMessage(ctx context.Context, o offer) (chat.Outbound, error) {
	_, next, err := a.cron.Preview(o.When, o.Zone, 3)
	if err != nil {
		return chat.Outbound{}, err
	}
	say := chat.Outbound{
		To: o.To, Class: chat.Command, ReplyTo: o.ReplyTo, TurnID: o.said(),
		Markdown: fmt.Sprintf(textOffer, o.Text, a.commands.Upcoming(o.Agent, commands.Job{Next: next})),
	}
	if o.To.Channel == console.Channel { // it has no buttons
		say.Markdown += fmt.Sprintf(textOfferTyped, o.When, strings.ReplaceAll(o.Text, "`", "'"))
		return say, nil
	}
	token, err := a.offers.add(ctx, o, a.opts.Clock.Now())
	say.Buttons = []chat.Button{{Label: labelTake, Command: wordTake + " " + token}, {Label: labelLeave, Command: wordLeave + " " + token}}
	return say, err
}

// pressed takes in what somebody pressed below an offer.
func (j *job) pressed(ctx context.Context, p press) {
	if _, err := j.a.inbound.Dispatched(ctx, j.seq); err != nil {
		j.notBegun(ctx, err)
		return
	}
	o, text, settled := j.settle(ctx, p)
	if settled {
		j.done(ctx, j.replace(ctx, o, text))
		return
	}
	j.done(ctx, j.reply(ctx, commands.Reply{Text: text}, ""))
}

// settle decides about an offer once, however often somebody presses. settled tells that the text takes
// the place of the offer; otherwise it is for the person who pressed.
func (j *job) settle(ctx context.Context, p press) (o offer, text string, settled bool) {
	a := j.a
	defer a.offers.hold()()
	o, known := a.offers.known[p.token]
	switch {
	case !known, !o.here(j.in.Address), !a.opts.Clock.Now().Before(o.Until), !a.cfg().Agent(o.Agent).Commitments:
		return o, textOfferOver, false
	case !j.owner && (j.in.Sender.ID == "" || j.in.Sender.ID != o.For):
		return o, textOfferNot, false
	case o.By != "" && o.By != j.turn && o.Taken == p.take:
		return o, "", false // the same finger, twice
	case o.By != "" && o.By != j.turn:
		return o, textOfferTaken, false
	}
	open := o
	o.By, o.Taken = j.turn, p.take
	if err := a.offers.put(ctx, p.token, o); err != nil {
		a.log.ErrorContext(ctx, "offer_not_stored", "turn", j.turn, "error", err.Error())
		return o, textOfferFault, false
	}
	if !p.take {
		return o, fmt.Sprintf(textNoOffer, o.Text), true
	}
	set, err := reminders{cronDesk{a}}.keep(ctx, p.token, o)
	var told interface{ Public() string }
	switch {
	case err == nil:
		return o, a.commands.Reminded(o.Agent, set), true
	case errors.Is(err, errLate):
		o.Taken = false
		return o, fmt.Sprintf(textOfferLate, o.Text), true
	case errors.As(err, &told):
		text = told.Public()
	default:
		a.log.ErrorContext(ctx, "offer_not_taken", "turn", j.turn, "error", err.Error())
		text = textOfferFault
	}
	if err := a.offers.put(ctx, p.token, open); err != nil {
		a.log.ErrorContext(ctx, "offer_not_stored", "turn", j.turn, "error", err.Error())
	}
	return o, text, false
}

// replace says a text in the place of an offer and returns how many replies that makes.
func (j *job) replace(ctx context.Context, o offer, text string) int {
	j.a.log.InfoContext(ctx, "offer_settled", "turn", o.Turn, "taken", o.Taken)
	say := chat.Outbound{To: o.To, Class: chat.Command, Markdown: text, ReplyTo: o.ReplyTo, TurnID: j.turn}
	_, ids, err := j.a.delivery.Standing(ctx, o.said(), 0)
	switch {
	case err != nil:
		j.a.log.WarnContext(ctx, "offer_not_found", "turn", o.Turn, "error", err.Error())
	case len(ids) > 0:
		say.Replaces = ids[0]
	}
	if err := j.a.delivery.Send(ctx, say); err != nil {
		j.a.log.ErrorContext(ctx, "command_reply_not_sent", "turn", j.turn, "error", err.Error())
		return j.say(ctx, chat.Notice, fmt.Sprintf(textNotStored, j.turn))
	}
	return 1
}
