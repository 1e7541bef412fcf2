package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/chat"
	"understudy/commands"
	"understudy/cron"
	"understudy/llm"
	"understudy/reply"
)

// ownTools are the functions for models that reach beyond their answer: into the conversation that the
// turn belongs to, and no other.
func (a *App) ownTools(to chat.Address, kind reply.Kind) []reply.Tool {
	var list []reply.Tool
	if to.Conversation != "" {
		list = append(list, a.sendTool())
	}
	if kind == reply.Message { // a task does not make tasks
		list = append(list, a.cronTool())
	}
	return list
}

// Bounds of what a model may say beside its answer.
const (
	mostSent    = 5        // messages of one turn
	largestSent = 16 << 10 // bytes
)

// sendTool says something at once in the conversation of the turn.
func (a *App) sendTool() reply.Tool {
	return reply.Tool{
		Tool: llm.Tool{
			Name:        "send_message",
			Description: "Say something at once in this conversation, beside your answer: for example that a long task goes on. Do not repeat it in the answer. It cannot reach any other conversation.",
			Schema:      json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"Markdown"}},"required":["text"],"additionalProperties":false}`),
		},
		Run: a.sendFromTurn,
	}
}

func (a *App) sendFromTurn(ctx context.Context, c reply.Call) (string, error) {
	var in struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(c.Input, &in); err != nil || strings.TrimSpace(in.Text) == "" || len(in.Text) > largestSent {
		return "", fmt.Errorf("text must be a text of at most %d KB", largestSent>>10)
	}
	n, class := a.sent.count(c.Turn), chat.Assistant
	if n > mostSent {
		return "", fmt.Errorf("a turn may send at most %d messages", mostSent)
	}
	p := a.backstage.of(c.Turn)
	if p != nil {
		class = chat.Cron
	}
	o := chat.Outbound{To: c.To, Class: class, Markdown: in.Text, TurnID: fmt.Sprintf("%s-sent-%d", c.Turn, n)}
	if err := a.delivery.Send(ctx, o); err != nil {
		return "", errors.New("it could not be sent")
	}
	if p != nil {
		p.sent.Add(1)
		if p.to.Destination() == c.To.Destination() {
			p.spoke.Store(true)
		}
	}
	return "sent", nil
}

// cronTool looks after the tasks of the conversation of the turn.
func (a *App) cronTool() reply.Tool {
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
		Run: a.cronFromTurn,
	}
}

// cronOrder is what a model wants of the scheduler.
type cronOrder struct {
	Action, Schedule, Text, Name, ID string
	Reminder                         bool
}

func (a *App) cronFromTurn(ctx context.Context, c reply.Call) (string, error) {
	var in cronOrder
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return "", errors.New("the input is not what the schema says")
	}
	here, err := a.inPlace(ctx, c.To, "", tagReminder, tagLoop)
	if err != nil {
		return "", errors.New("the tasks cannot be read")
	}
	owner, mine := a.askedByOwner(c.Session), creator(c.To, c.Sender)
	if !owner {
		here = slices.DeleteFunc(here, func(j cron.Job) bool { return j.CreatedBy != mine })
	}
	switch in.Action {
	case "list":
		return a.jobsForModel(here)
	case "remove":
		if !slices.ContainsFunc(here, func(j cron.Job) bool { return j.ID == in.ID }) {
			return "", errors.New("there is no such task of this conversation")
		}
		if err := a.cron.Remove(ctx, in.ID); err != nil {
			return "", modelError(err)
		}
		return "removed", nil
	case "add":
		if len(here) >= mostInPlace {
			return "", errors.New("there are too many tasks in this conversation")
		}
		return a.addForModel(ctx, c, in, owner, mine)
	}
	return "", errors.New("action is list, add or remove")
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
		return "", errors.New("only the bot's owner may schedule prompts; set reminder to true for a reminder")
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
	return errors.New("a fault of the bot")
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

// askedByOwner reports whether the turn that runs in a session answers the bot's owner.
func (a *App) askedByOwner(key string) bool {
	v, ok := a.turns.byKey.Load(key)
	return ok && v.(*running).jobs[0].owner
}
