package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"understudy/chat"
	"understudy/commands"
	"understudy/delivery"
	"understudy/gateway"
	"understudy/inbound"
	"understudy/reply"
	"understudy/session"
)

// running is one turn with all the messages it answers: those it began with (queue mode collect) and
// those it took over on its way (steer). Their fate is one: they are answered, or fail, together.
type running struct {
	a *App
	// jobs are the messages; the first one gives the turn its name and place. They belong to the
	// goroutine of the turn.
	jobs []*job
	// What does not change once the turn runs, for others.
	to    chat.Address
	batch string // of the lane
	once  commands.Once
}

// turns are the turns that wait or run, by what they are looked for.
type turns struct {
	queued sync.Map // turn id → *job that waits in a lane
	byID   sync.Map // turn id → *running, until it has its way out
	byKey  sync.Map // session key → *running
}

// runTurn answers the messages of a batch.
func (a *App) runTurn(ctx context.Context, batch string, w session.Work) {
	free := context.WithoutCancel(ctx)
	r := &running{a: a, batch: batch}
	var waiting []*job
	for _, item := range w.Items {
		j := item.(*job)
		a.turns.queued.Delete(j.turn)
		waiting = append(waiting, j)
	}
	for len(r.jobs) == 0 && len(waiting) > 0 {
		r.lead(free, waiting[0])
		waiting = waiting[1:]
	}
	if len(r.jobs) == 0 {
		return
	}
	r.take(free, waiting)
	r.run(ctx, w.Digests)
}

// lead begins with a message, if there still is one.
func (r *running) lead(ctx context.Context, j *job) {
	err := r.a.joined.part(ctx, j.turn)
	if err == nil {
		err = j.begin(ctx)
	}
	if err != nil {
		j.notBegun(ctx, err)
		return
	}
	r.jobs, r.to, r.once = append(r.jobs, j), j.in.Address, j.once
}

// take adds messages and returns those that there still are.
func (r *running) take(ctx context.Context, list []*job) (taken []*job) {
	if len(list) == 0 {
		return nil
	}
	ids := make([]string, len(list))
	for i, j := range list {
		r.a.turns.queued.Delete(j.turn)
		ids[i] = j.turn
	}
	noted := r.a.joined.join(ctx, r.jobs[0].turn, ids...)
	for _, j := range list {
		err := noted
		if err == nil {
			err = j.begin(ctx)
		}
		if err != nil {
			j.notBegun(ctx, err)
			continue
		}
		j.working()
		r.jobs, taken = append(r.jobs, j), append(taken, j)
	}
	return taken
}

// steered hands over what may go to the turn that runs in a session; see reply.Deps.Steer.
func (a *App) steered(key string) []reply.Said {
	v, ok := a.turns.byKey.Load(key)
	if !ok {
		return nil
	}
	r := v.(*running)
	var list []*job
	for _, item := range a.lanes.Take(key) {
		list = append(list, item.(*job))
	}
	return said(r.take(context.Background(), list))
}

// said are messages as a turn takes them.
func said(jobs []*job) []reply.Said {
	var list []reply.Said
	for _, j := range jobs {
		list = append(list, reply.Said{In: &j.in, Text: j.text})
	}
	return list
}

// run runs the turn.
func (r *running) run(ctx context.Context, digests []string) {
	a, j := r.a, r.jobs[0]
	j.renew(context.WithoutCancel(ctx))
	a.turns.byID.Store(j.turn, r)
	defer a.turns.byID.Delete(j.turn)
	a.turns.byKey.Store(j.key, r)
	defer a.turns.byKey.CompareAndDelete(j.key, r)
	a.running.Add(1)
	defer a.running.Add(-1)
	began := a.opts.Clock.Now()
	r.lookBack(ctx)
	o, err := a.reply.Run(ctx, reply.Request{
		ID: j.turn, Agent: j.agent, Key: j.key, Parent: j.parent, To: j.in.Address, In: &j.in, Text: j.text,
		More: said(r.jobs[1:]), History: r.history(), Digests: digests, Tail: a.remembers(j.in.Address),
	})
	ctx = context.WithoutCancel(ctx)
	a.metrics.TurnEnded(gateway.Turn{
		Channel: j.in.Address.Channel, Model: o.Model.String(), Outcome: o.Status.String(), Trigger: "message",
		Duration: a.opts.Clock.Since(began), Waited: began.Sub(j.at),
	})
	a.countTokens(o.Model, o.Usage)
	r.end(ctx, o, err)
}

// end ends the work on all messages of the turn.
func (r *running) end(ctx context.Context, o reply.Outcome, err error) {
	lead, others := r.jobs[0], r.jobs[1:]
	switch {
	case err != nil:
		r.a.log.ErrorContext(ctx, "turn_not_delivered", "turn", lead.turn, "error", err.Error())
		lead.failed(ctx, err, lead.say(ctx, chat.Notice, fmt.Sprintf(textNotStored, lead.turn))) // needs no outbox, which may be what failed
		for _, j := range others {
			j.failed(ctx, err, 0)
		}
	case o.Status == reply.Interrupted: // the next start runs it again
		for _, j := range r.jobs {
			j.finished(0)
		}
		return
	default:
		replies := 0
		if (o.Status == reply.Answered || o.Status == reply.Failed) && !o.Quiet {
			replies = 1
		}
		for i, j := range r.jobs {
			if o.Status == reply.Answered {
				j.participated(ctx)
			}
			if i > 0 {
				replies = 0
			}
			j.done(ctx, replies)
		}
	}
	ids := make([]string, len(others))
	for i, j := range others {
		ids[i] = j.turn
	}
	if err := r.a.joined.part(ctx, ids...); err != nil {
		r.a.log.ErrorContext(ctx, "joined_turns_not_stored", "turn", lead.turn, "error", err.Error())
	}
}

// history is what was said in the group since the bot last answered there, oldest first.
func (r *running) history() []reply.HistoryLine {
	var lines []reply.HistoryLine
	for _, j := range r.jobs {
		for _, l := range j.overheard {
			who := l.Sender.Name
			if who == "" {
				who = l.Sender.ID
			}
			lines = append(lines, reply.HistoryLine{Sender: who, SenderID: l.Sender.ID, Text: l.Text, At: l.At})
		}
	}
	slices.SortStableFunc(lines, func(a, b reply.HistoryLine) int { return a.At.Compare(b.At) })
	return lines
}

// outlet is the way out of a turn, with the signs of work of all its messages: they end where its
// answer begins.
type outlet struct {
	*delivery.Turn
	r *running
}

// Finish implements reply.Delivery.
func (o outlet) Finish(ctx context.Context, out chat.Outbound) error {
	o.others()
	return o.Turn.Finish(ctx, out)
}

// Cancel implements reply.Delivery.
func (o outlet) Cancel() {
	o.others()
	o.Turn.Cancel()
}

func (o outlet) others() {
	for _, j := range o.r.jobs[1:] {
		j.cancelTyping()
	}
}

// wayOut opens the way to a turn's place; see reply.Deps.Begin.
func (a *App) wayOut(to chat.Address, in *chat.Inbound, turn string) reply.Delivery {
	v, ok := a.turns.byID.Load(turn)
	if !ok {
		t := a.delivery.Begin(to, in, turn)
		t.Working()
		return t
	}
	r := v.(*running)
	t := r.jobs[0].out
	if t == nil {
		t = a.delivery.Begin(to, in, turn)
	}
	t.Working()
	return outlet{t, r}
}

// digest is the line that stays of a message which gives way in a full queue.
func digest(in chat.Inbound, text string) string {
	const most = 160 // characters
	line := strings.Join(strings.Fields(text), " ")
	if n := len(in.Attachments); n > 0 {
		line = strings.TrimSpace(fmt.Sprintf("%s [files: %d]", line, n))
	}
	if r := []rune(line); len(r) > most {
		line = string(r[:most-1]) + "…"
	}
	if who := in.Sender.Name; who != "" && in.Address.Kind != chat.Direct {
		line = strings.Join(strings.Fields(who), " ") + ": " + line
	}
	return line
}

// begin marks the message as being answered and takes in what has changed while it waited.
func (j *job) begin(ctx context.Context) error {
	m, err := j.a.inbound.Dispatched(ctx, j.seq)
	if err != nil {
		return err
	}
	edited := m.In.Text != j.in.Text
	j.in, j.overheard, j.owner = m.In, m.History, m.Owner
	if edited && !j.follows {
		j.reread(ctx)
	}
	return nil
}

// participated notes that the bot speaks in the thread of the message.
func (j *job) participated(ctx context.Context) {
	if err := j.a.inbound.Participated(ctx, j.seq); err != nil {
		j.a.log.ErrorContext(ctx, "participation_not_stored", "turn", j.turn, "error", err.Error())
	}
}

// notBegun ends the work on a message that is closed already, or that the journal could not begin:
// that one is answered by the next start.
func (j *job) notBegun(ctx context.Context, err error) {
	if !errors.Is(err, inbound.ErrClosed) {
		j.a.log.ErrorContext(ctx, "journal_not_written", "turn", j.turn, "error", err.Error())
	}
	j.cancelTyping()
	j.finished(0)
}
