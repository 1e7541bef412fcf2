package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"understudy/chat"
	"understudy/commands"
	"understudy/cron"
)

// reminders are tasks that say a text without asking a model.
type reminders struct{ cronDesk }

var _ commands.Reminders = reminders{}

// textReminder stands before what somebody wanted to be reminded of.
const textReminder = "⏰ "

// mostWhen is how many words of a reminder may say when.
const mostWhen = 8

// Remind implements commands.Reminders. What says when stands at the beginning or the end.
func (d reminders) Remind(ctx context.Context, c commands.Call, text string) (commands.Job, error) {
	if err := d.room(ctx, c); err != nil {
		return commands.Job{}, err
	}
	words := strings.Fields(text)
	if len(words) > 0 && strings.EqualFold(words[0], "me") {
		words = words[1:]
	}
	var first error // what is wrong with the likeliest reading
	for _, r := range readings(words) {
		card, err := d.a.cron.Add(ctx, draft(c, r))
		if err == nil {
			return d.job(card), nil
		}
		var bad *cron.Invalid
		switch {
		case !errors.As(err, &bad) || bad.Field != "schedule" && bad.Field != "name":
			return commands.Job{}, refused(err)
		case first == nil && bad.Field == "schedule":
			first = err
		}
	}
	if first == nil || len(words) < 2 {
		return commands.Job{}, &commands.Refusal{Text: "Say when and of what, for example `/remind 20m stretch` or `/remind tomorrow 9:00 call Anna`."}
	}
	return commands.Job{}, &commands.Refusal{Text: "I do not understand when. Write for example `/remind 20m stretch`, `/remind tomorrow 9:00 call Anna` or `/remind every weekday at 9 look at the mail`."}
}

// room refuses a further reminder where somebody has too many.
func (d reminders) room(ctx context.Context, c commands.Call) error {
	mine, err := d.mine(ctx, c)
	if err == nil && len(mine) >= mostInPlace {
		err = &commands.Refusal{Text: "You have too many reminders here; /remind list shows them, /remind cancel <id> takes one back."}
	}
	return err
}

// draft is the task of a reminder.
func draft(c commands.Call, r reading) cron.Draft {
	return cron.Draft{
		Tag: tagReminder, Name: short(r.what), Agent: c.Agent, CreatedBy: creator(c.To, c.In.Sender), Kind: cron.Saying, Schedule: r.when,
		Exact: true, Origin: c.To, Session: c.Key, Message: textReminder + r.what,
	}
}

// errLate tells that the time of an offer has passed.
var errLate = errors.New("the time is over")

// keep sets the reminder of an offer. The task is called like the token, so that doing it again after a
// crash finds it.
func (d reminders) keep(ctx context.Context, token string, o offer) (commands.Job, error) {
	id := strings.ToLower(token)
	switch there, err := d.a.jobs.Get(ctx, id); {
	case err == nil:
		return d.job(d.a.cron.Card(there)), nil
	case !errors.Is(err, cron.ErrNotFound):
		return commands.Job{}, err
	}
	if at, err := time.Parse(time.RFC3339, o.When); err == nil && !at.After(d.a.opts.Clock.Now()) {
		return commands.Job{}, errLate
	}
	c := commands.Call{Agent: o.Agent, Key: o.Session, To: o.To, In: chat.Inbound{Address: o.To, Sender: chat.Sender{ID: o.For}}}
	if err := d.room(ctx, c); err != nil {
		return commands.Job{}, err
	}
	x := draft(c, reading{o.When, o.Text})
	x.ID, x.Zone = id, o.Zone
	card, err := d.a.cron.Add(ctx, x)
	return d.job(card), refused(err)
}

// reading is one way to take a reminder apart.
type reading struct{ when, what string }

// readings lists the ways to take a text apart, the likeliest first: the longest time at the beginning,
// then the longest one at the end.
func readings(words []string) (list []reading) {
	for n := min(len(words)-1, mostWhen); n > 0; n-- {
		list = append(list, reading{strings.Join(words[:n], " "), about(words[n:])})
	}
	for n := min(len(words)-1, mostWhen); n > 0; n-- {
		list = append(list, reading{strings.Join(words[len(words)-n:], " "), about(words[:len(words)-n])})
	}
	return slices.DeleteFunc(list, func(r reading) bool { return r.what == "" })
}

// short makes a name of a text.
func short(text string) string {
	if r := []rune(text); len(r) > 24 {
		return string(r[:23]) + "…"
	}
	return text
}

// about is what to remind of, without the little words that join it to the time.
func about(words []string) string {
	for len(words) > 0 && slices.Contains([]string{"to", "of", "that", "about"}, strings.ToLower(words[0])) {
		words = words[1:]
	}
	return strings.Join(words, " ")
}

// mine lists the reminders that somebody set in a conversation.
func (d reminders) mine(ctx context.Context, c commands.Call) ([]cron.Job, error) {
	list, err := d.a.inPlace(ctx, c.To, tagReminder)
	who := creator(c.To, c.In.Sender)
	return slices.DeleteFunc(list, func(j cron.Job) bool { return j.CreatedBy != who }), err
}

// Reminders implements commands.Reminders.
func (d reminders) Reminders(ctx context.Context, c commands.Call) ([]commands.Job, error) {
	list, err := d.mine(ctx, c)
	return d.shown(list), err
}

// Forget implements commands.Reminders.
func (d reminders) Forget(ctx context.Context, c commands.Call, id string) error {
	list, err := d.mine(ctx, c)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(j cron.Job) bool { return j.ID == id }) {
		return refused(cron.ErrNotFound)
	}
	return d.Remove(ctx, id)
}
