package app

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"understudy/chat"
	"understudy/commands"
	"understudy/cron"
	"understudy/llm"
	"understudy/reply"
)

// cron is the tool that looks after the tasks of the conversation of the turn.
func (b toolbox) cron() reply.Tool {
	return reply.Tool{
		Tool: llm.Tool{
			Name: "cron",
			Description: "Scheduled tasks of this conversation: list them, add one, remove one. A task runs a prompt unattended at its time and says the result here; with reminder=true the text is said as it is, without a model (a reminder). " +
				"Schedules: 20m, tomorrow 9:00, every 2 hours, every weekday at 9, or a cron expression. Tell the user the times of the next runs that come back.",
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"action":{"type":"string","enum":["list","add","remove"]},` +
				`"schedule":{"type":"string","description":"for add"},` +
				`"text":{"type":"string","description":"for add: the prompt, or the text of a reminder"},` +
				`"reminder":{"type":"boolean","description":"for add: say the text as it is"},` +
				`"name":{"type":"string","description":"for add: a short name"},` +
				`"id":{"type":"string","description":"for remove"}},` +
				`"required":["action"],"additionalProperties":false}`),
		},
		Run: func(ctx context.Context, c reply.Call) (string, error) {
			return b.a.cronFromTurn(ctx, c, b.people(ctx, c))
		},
	}
}

// cronOrder is what a model wants of the scheduler.
type cronOrder struct {
	Action, Schedule, Text, Name, ID string
	Reminder                         bool
}

// What a model is told that may not do what it wants with tasks.
var (
	errUnasked   = errors.New("not done: tasks are looked at and changed only when somebody asks, and nobody asked in this turn")
	errNotOwners = errors.New("only the bot's owner may schedule prompts, and only where no words of others are in the turn; the owner may use /cron add instead. " +
		"A reminder (set reminder to true) is for everybody")
)

// cronFromTurn does what a model wants for the people of its turn.
func (a *App) cronFromTurn(ctx context.Context, c reply.Call, by people) (string, error) {
	var in cronOrder
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return "", errors.New("the input is not what the schema says")
	}
	if len(by.asking()) == 0 {
		return "", errUnasked
	}
	all, err := a.inPlace(ctx, c.To, "", tagReminder, tagLoop)
	if err != nil {
		return "", errors.New("the tasks cannot be read")
	}
	theirs := by.theirs(c.To, all)
	switch in.Action {
	case "list":
		return a.jobsForModel(theirs)
	case "remove":
		if !slices.ContainsFunc(theirs, func(j cron.Job) bool { return j.ID == in.ID }) {
			return "", errors.New("there is no such task of this conversation")
		}
		if err := a.cron.Remove(ctx, in.ID); err != nil {
			return "", modelError(err)
		}
		return "removed", nil
	case "add":
		who, n := by.creator(c.To), 0
		for _, j := range all {
			if j.CreatedBy == who {
				n++
			}
		}
		if n >= mostInPlace {
			return "", errors.New("there are too many tasks in this conversation")
		}
		return a.addForModel(ctx, c, in, by.owners(), who)
	}
	return "", errors.New("action is list, add or remove")
}

// theirs are the tasks that everybody who asks may look at and remove: their own, and for owners, where
// no words of others are in the turn, all.
func (p people) theirs(to chat.Address, list []cron.Job) []cron.Job {
	alone := !slices.ContainsFunc(p, func(x person) bool { return !x.asks && !x.owner })
	foreign := func(j cron.Job) bool {
		return slices.ContainsFunc(p.asking(), func(x person) bool {
			return !(x.owner && alone) && creator(to, x.in.Sender) != j.CreatedBy
		})
	}
	return slices.DeleteFunc(slices.Clone(list), foreign)
}

// addForModel makes a task. What costs money again and again is the owner's to decide.
func (a *App) addForModel(ctx context.Context, c reply.Call, in cronOrder, owner bool, mine string) (string, error) {
	d := cron.Draft{
		Agent: c.Agent, CreatedBy: mine, Schedule: in.Schedule, Origin: c.To, Session: c.Session, Message: in.Text, Name: short(in.Name),
	}
	switch {
	case in.Reminder:
		d.Tag, d.Kind, d.Exact, d.Message = tagReminder, cron.Saying, true, textReminder+in.Text
		if d.Name == "" {
			d.Name = short(in.Text)
		}
	case !owner:
		return "", errNotOwners
	}
	card, err := a.cron.Add(ctx, d)
	if err != nil {
		return "", modelError(err)
	}
	return a.jobsForModel([]cron.Job{card.Job})
}

// modelError is an error as a model is told it.
func modelError(err error) error {
	var bad *cron.Invalid
	var no *commands.Refusal
	switch err = refused(err); {
	case errors.As(err, &bad):
		return bad
	case errors.As(err, &no):
		return no
	}
	return errToolFault
}

// jobsForModel lists tasks for a model.
func (a *App) jobsForModel(list []cron.Job) (string, error) {
	type entry struct {
		ID       string   `json:"id"`
		Name     string   `json:"name"`
		Schedule string   `json:"schedule"`
		On       bool     `json:"on"`
		Next     []string `json:"next,omitempty"`
		Last     string   `json:"last,omitempty"`
	}
	out := []entry{}
	for _, j := range list {
		c := a.cron.Card(j)
		e := entry{ID: c.ID, Name: c.Name, Schedule: c.Description, On: c.Enabled, Last: string(c.State.LastStatus)}
		for _, at := range c.Next {
			e.Next = append(e.Next, at.Format(time.RFC1123))
		}
		out = append(out, e)
	}
	text, err := json.Marshal(out)
	return string(text), err
}
