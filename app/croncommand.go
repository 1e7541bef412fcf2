package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy/chat"
	"understudy/commands"
	"understudy/cron"
)

// cronDesk is the scheduler as the commands of a chat see it.
type cronDesk struct{ a *App }

var _ commands.Cron = cronDesk{}

// refused makes an error fit for chat, if it is about what a person asked for.
func refused(err error) error {
	for _, known := range []struct {
		err  error
		text string
	}{
		{cron.ErrNotFound, "There is no such task (any more)."},
		{cron.ErrEdited, "Somebody else changed this task at the same moment. Look at it and try again."},
		{cron.ErrRunning, "It is running already."},
		{cron.ErrNotDue, "Its time has not come."},
		{cron.ErrTooMany, "There are too many tasks; remove some."},
		{cron.ErrStopped, "I am shutting down and begin nothing any more."},
	} {
		if errors.Is(err, known.err) {
			return &commands.Refusal{Text: known.text}
		}
	}
	return err
}

// List implements commands.Cron.
func (d cronDesk) List(ctx context.Context, all bool) ([]commands.Job, error) {
	list, err := d.a.jobs.List(ctx, all)
	return d.shown(list), err
}

// Summary implements commands.Cron.
func (d cronDesk) Summary(ctx context.Context) (on int, next commands.Job, err error) {
	list, err := d.a.jobs.List(ctx, false)
	if err != nil || len(list) == 0 {
		return 0, next, err
	}
	return len(list), d.job(d.a.cron.Card(list[0])), nil
}

// Add implements commands.Cron.
func (d cronDesk) Add(ctx context.Context, c commands.Call, x commands.JobDraft) (commands.Job, error) {
	card, err := d.a.cron.Add(ctx, cron.Draft{
		Name: x.Name, Agent: c.Agent, CreatedBy: creator(c.To, c.In.Sender), Schedule: x.Schedule, Zone: x.Zone, Exact: x.Exact,
		Target: cron.Target(x.Session), Origin: c.To, Session: c.Key, Message: x.Prompt, Model: x.Model, Thinking: x.Thinking,
		TimeoutSeconds: int(x.Timeout / time.Second), Quiet: x.Quiet, Keep: x.Keep,
	})
	return d.job(card), refused(err)
}

// creator names who made a task.
func creator(to chat.Address, who chat.Sender) string {
	if who.ID == "" {
		return to.Channel
	}
	return to.Channel + ":" + who.ID
}

// Edit implements commands.Cron.
func (d cronDesk) Edit(ctx context.Context, id string, p commands.JobPatch) (commands.Job, error) {
	patch := cron.Patch{
		Name: p.Name, Schedule: p.Schedule, Zone: p.Zone, Message: p.Prompt, Model: p.Model, Thinking: p.Thinking,
		Exact: p.Exact, Quiet: p.Quiet, Keep: p.Keep,
	}
	if p.Session != nil {
		target := cron.Target(*p.Session)
		patch.Target = &target
	}
	if p.Timeout != nil {
		seconds := int(*p.Timeout / time.Second)
		patch.TimeoutSeconds = &seconds
	}
	card, err := d.a.cron.Edit(ctx, id, patch)
	return d.job(card), refused(err)
}

// Enable implements commands.Cron.
func (d cronDesk) Enable(ctx context.Context, id string) (commands.Job, error) {
	card, err := d.a.cron.Enable(ctx, id)
	return d.job(card), refused(err)
}

// Disable implements commands.Cron.
func (d cronDesk) Disable(ctx context.Context, id string) (commands.Job, error) {
	card, err := d.a.cron.Disable(ctx, id)
	return d.job(card), refused(err)
}

// Remove implements commands.Cron.
func (d cronDesk) Remove(ctx context.Context, id string) error {
	return refused(d.a.cron.Remove(ctx, id))
}

// Run implements commands.Cron.
func (d cronDesk) Run(ctx context.Context, id string) error {
	_, err := d.a.cron.RunNow(ctx, id, false)
	return refused(err)
}

// Runs implements commands.Cron.
func (d cronDesk) Runs(ctx context.Context, id string, limit int) ([]commands.JobRun, error) {
	list, err := d.a.jobs.Runs(ctx, id, limit)
	if err != nil {
		return nil, err
	}
	out := make([]commands.JobRun, len(list))
	for i, r := range list {
		out[i] = commands.JobRun{
			ID: r.ID, Trigger: string(r.Trigger), Scheduled: r.ScheduledAt, Started: r.StartedAt, Finished: r.FinishedAt, Status: string(r.Status),
			Reason: runReason(r), Model: r.Model, StoodIn: r.FallbackUsed, Excerpt: r.Excerpt,
		}
	}
	return out, nil
}

// runReason says in words what was wrong with a run; "" = nothing.
func runReason(r cron.Run) string {
	text := r.Error
	switch {
	case text == "" && r.Reason != "":
		text = r.Reason.Text()
	case r.Completion == cron.Pending:
		text = "the result is on its way"
	}
	if r.FallbackUsed {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("asked %s, which did not answer (%s)", r.Requested, r.FallbackReason)
	}
	return text
}

func (d cronDesk) shown(list []cron.Job) []commands.Job {
	var out []commands.Job
	for _, j := range list {
		out = append(out, d.job(d.a.cron.Card(j)))
	}
	return out
}

// job is a task as people look at it.
func (d cronDesk) job(c cron.Card) commands.Job {
	st := c.State
	j := commands.Job{
		ID: c.ID, Name: c.Name, Agent: c.Agent, Enabled: c.Enabled, Schedule: c.Description, Next: c.Next, Prompt: c.Payload.Message,
		Model: c.Payload.Model, Session: string(c.Target), Delivery: placeText(c.Delivery),
		Running: st.Running(), LastRun: st.LastRunAt, LastStatus: string(st.LastStatus), LastError: st.LastError,
		Failures: st.ConsecutiveErrors, OffBecause: st.DisabledReason,
	}
	if st.LastFallback {
		j.StandIn = st.LastModel
		note := "answered by " + st.LastModel.String() + ", which stood in"
		if j.LastError != "" {
			note = j.LastError + "; " + note
		}
		j.LastError = note
	}
	return j
}

// placeText says where results go; "" = nowhere. The URL of a webhook may be a secret.
func placeText(d cron.Delivery) string {
	switch d.Mode {
	case cron.Quiet:
		return ""
	case cron.Webhook:
		return "a webhook"
	}
	text := d.To.Channel
	if d.To.Account != "" {
		text += "/" + d.To.Account
	}
	text += " " + d.To.Conversation
	if d.To.Thread != "" {
		text += ", thread " + d.To.Thread
	}
	return text
}

// The tags of what is made in other ways than with /cron.
const (
	tagReminder = "reminder"
	tagLoop     = "loop"
)

// mostInPlace bounds the reminders, loops and tasks that are made in one conversation without an owner.
const mostInPlace = 50

// inPlace lists the tasks of a conversation with one of the tags.
func (a *App) inPlace(ctx context.Context, to chat.Address, tags ...string) ([]cron.Job, error) {
	list, err := a.jobs.List(ctx, true)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(j cron.Job) bool {
		return j.Origin.Destination() != to.Destination() || !slices.Contains(tags, j.Tag)
	}), nil
}

// loopDesk makes tasks that repeat in a conversation.
type loopDesk struct{ cronDesk }

var _ commands.Loops = loopDesk{}

// Start implements commands.Loops.
func (d loopDesk) Start(ctx context.Context, c commands.Call, every time.Duration, prompt string) (commands.Job, error) {
	card, err := d.a.cron.Add(ctx, cron.Draft{
		Tag: tagLoop, Agent: c.Agent, CreatedBy: creator(c.To, c.In.Sender), Schedule: "every " + every.String(), Target: cron.Current,
		Origin: c.To, Session: c.Key, Message: prompt,
	})
	return d.job(card), refused(err)
}

// Loops implements commands.Loops.
func (d loopDesk) Loops(ctx context.Context, c commands.Call) ([]commands.Job, error) {
	list, err := d.a.inPlace(ctx, c.To, tagLoop)
	return d.shown(list), err
}

// Stop implements commands.Loops.
func (d loopDesk) Stop(ctx context.Context, c commands.Call, id string) error {
	list, err := d.a.inPlace(ctx, c.To, tagLoop)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(j cron.Job) bool { return j.ID == id }) {
		return refused(cron.ErrNotFound)
	}
	return d.Remove(ctx, id)
}
