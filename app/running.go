package app

import (
	"cmp"
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
	jobs   []*job
	voices voices // whose words are in the turn, for its tools
	// What does not change once the turn runs, for others.
	to    chat.Address
	agent string
	batch string // of the lane
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
	waiting, digested := a.claim(w.Items), a.claim(w.Digested)
	for len(r.jobs) == 0 && len(waiting) > 0 {
		r.lead(free, waiting[0])
		waiting = waiting[1:]
	}
	for len(r.jobs) == 0 && len(digested) > 0 { // nothing else is left to be answered
		r.lead(free, digested[0])
		digested = digested[1:]
	}
	if len(r.jobs) == 0 {
		return
	}
	r.take(free, waiting)
	r.run(ctx, r.tell(free, r.jobs[0], digested))
}

// claim takes over what a lane hands out.
func (a *App) claim(items []any) []*job {
	list := make([]*job, len(items))
	for i, item := range items {
		list[i] = item.(*job)
		a.turns.queued.Delete(list[i].turn)
	}
	return list
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
	r.jobs, r.to, r.agent = append(r.jobs, j), j.in.Address, j.agent
	r.voices.hear(j)
}

// take adds messages and returns those that there still are.
func (r *running) take(ctx context.Context, list []*job) (taken []*job) {
	taken = r.join(ctx, list)
	for _, j := range taken {
		j.working()
	}
	r.jobs = append(r.jobs, taken...)
	return taken
}

// join begins with messages that share the fate of the turn, and returns those that there still are.
func (r *running) join(ctx context.Context, list []*job) (begun []*job) {
	if len(list) == 0 {
		return nil
	}
	noted := r.a.joined.join(ctx, r.jobs[0].turn, turnsOf(list)...)
	for _, j := range list {
		err := noted
		if err == nil {
			err = j.begin(ctx)
		}
		if err != nil {
			j.notBegun(ctx, err)
			continue
		}
		begun = append(begun, j)
		r.voices.hear(j)
	}
	return begun
}

func turnsOf(list []*job) []string {
	ids := make([]string, len(list))
	for i, j := range list {
		ids[i] = j.turn
	}
	return ids
}

// tell takes messages along that gave way in a full queue, and returns a line of each to stand above
// another one, whose fate they share.
func (r *running) tell(ctx context.Context, above *job, list []*job) (lines []string) {
	above.told = r.join(ctx, list)
	for _, j := range above.told {
		lines = append(lines, digest(j.in, j.text))
	}
	return lines
}

// steered hands over what may go to the turn that runs in a session; see reply.Deps.Steer.
func (a *App) steered(key string) []reply.Said {
	v, ok := a.turns.byKey.Load(key)
	if !ok {
		return nil
	}
	r, ctx := v.(*running), context.Background()
	w := a.lanes.Take(key)
	taken, digested := r.take(ctx, a.claim(w.Items)), a.claim(w.Digested)
	for len(taken) == 0 && len(digested) > 0 { // the others were taken back
		taken, digested = r.take(ctx, digested[:1]), digested[1:]
	}
	list := said(taken)
	if len(list) > 0 {
		list[0].Digests = r.tell(ctx, taken[0], digested)
	}
	return list
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
	r.inherit(ctx)
	r.voices.overhear(r.jobs)
	once := r.once()
	o, err := a.reply.Run(ctx, reply.Request{
		ID: j.turn, Agent: j.agent, Key: j.key, Parent: j.parent, To: j.in.Address, In: &j.in, Text: j.text,
		More: said(r.jobs[1:]), History: r.history(), Digests: digests, Tail: a.remembers(j.in.Address),
		Think: once.Think, Verbose: once.Verbose,
	})
	cause := context.Cause(ctx)
	ctx = context.WithoutCancel(ctx)
	a.metrics.TurnEnded(gateway.Turn{
		Channel: j.in.Address.Channel, Model: blamed(o), Outcome: o.Status.String(), Trigger: "message",
		Duration: a.opts.Clock.Since(began), Waited: began.Sub(j.at),
	})
	a.countTokens(o.Model, o.Usage)
	back := r.giveBack(ctx, o, cause)
	r.end(ctx, o, err)
	for _, j := range back {
		j.queueTurn(ctx)
	}
}

// once is what the messages set for themselves alone (spec/chat.md §3.1). Of several that are answered as
// one, the last one that says something of it counts.
func (r *running) once() (once commands.Once) {
	for _, j := range r.jobs {
		once.Think, once.Verbose = cmp.Or(j.once.Think, once.Think), cmp.Or(j.once.Verbose, once.Verbose)
	}
	return once
}

// end ends the work on all messages of the turn, but for those that it gives back: the next start answers
// them, each by itself.
func (r *running) end(ctx context.Context, o reply.Outcome, err error) {
	if len(r.jobs) == 0 { // others than its own stopped it
		return
	}
	mine := len(r.jobs) - o.Left
	lead, others, left := r.jobs[0], withTold(r.jobs[:mine])[1:], withTold(r.jobs[mine:])
	switch {
	case err != nil:
		r.a.log.ErrorContext(ctx, "turn_not_delivered", "turn", lead.turn, "error", err.Error())
		lead.failed(ctx, err, lead.say(ctx, chat.Notice, fmt.Sprintf(textNotStored, lead.turn))) // needs no outbox, which may be what failed
		for _, j := range others {
			j.failed(ctx, err, 0)
		}
	case o.Status == reply.Interrupted: // the next start runs it again
		for _, j := range withTold(r.jobs) {
			j.finished(0)
		}
		return
	default:
		replies := 0
		if (o.Status == reply.Answered || o.Status == reply.Failed) && !o.Quiet {
			replies = 1
		}
		replies += r.offer(ctx, o)
		for _, j := range r.jobs {
			if o.Status == reply.Answered {
				j.participated(ctx)
			}
		}
		lead.done(ctx, replies)
		for _, j := range others {
			j.done(ctx, 0)
		}
	}
	for _, j := range left {
		j.finished(0)
	}
	if err := r.a.joined.part(ctx, turnsOf(slices.Concat(others, left))...); err != nil {
		r.a.log.ErrorContext(ctx, "joined_turns_not_stored", "turn", lead.turn, "error", err.Error())
	}
}

// withTold are messages, each with those of which a line stands above it.
func withTold(jobs []*job) (all []*job) {
	for _, j := range jobs {
		all = append(append(all, j), j.told...)
	}
	return all
}

// history is what was said in the group since the bot last answered there, oldest first.
func (r *running) history() []reply.HistoryLine {
	var lines []reply.HistoryLine
	for _, j := range withTold(r.jobs) {
		for _, l := range j.overheard {
			who := l.Sender.Name
			if who == "" {
				who = l.Sender.ID
			}
			lines = append(lines, reply.HistoryLine{Sender: who, SenderID: l.Sender.ID, Roles: l.Roles, Text: l.Text, At: l.At})
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
