package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy/channels/console"
	"understudy/channels/web"
	"understudy/chat"
	"understudy/commands"
	"understudy/delivery"
	"understudy/inbound"
	"understudy/llm"
	"understudy/session"
)

// textNoCommands is said to somebody who used a command natively and may not; typed ones are ignored
// (spec/chat.md §3.2). textFollows ends an interaction whose answer comes as a message of its own.
const (
	textNoCommands = "You are not authorized to use this command here."
	textFollows    = "The answer follows below."
)

// textBusy is said when a conversation has more waiting messages than it may.
const textBusy = "📥 Too many messages are waiting here; I dropped this one. Please send it again in a moment."

// textNotStored is said when an answer could not be handed over for delivery; it takes the reference.
const textNotStored = "⚠️ I could not store my answer, so I did not send it. Please send your message again. Reference: %s."

// Handle implements inbound.Handler: a command is answered at once, anything else becomes a turn in
// its session's lane.
func (a *App) Handle(ctx context.Context, m inbound.Message) {
	j := a.newJob(m)
	a.metrics.MessageReceived(m.In.Address.Channel, string(m.In.Address.Kind))
	a.noteOwner(ctx, m)
	inv, isCommand := a.commands.Match(m.In.Text)
	ballot, isBallot := a.approvals.match(m.In.Text)
	press, isPress := a.offers.match(m.In.Text)
	may := m.Owner || a.mayCommand(m.In) || isCommand && inv.Spec.OpenIn(j.call())
	free := context.WithoutCancel(ctx)
	switch {
	case isBallot:
		a.work.Go(func() { j.vote(free, ballot) })
	case isPress:
		a.work.Go(func() { j.pressed(free, press) })
	case isCommand && !may:
		a.work.Go(func() { j.refuse(free) })
	case isCommand && inv.Spec.Lane:
		j.inLane(free, inv)
	case isCommand && inOrder(inv.Spec.Name):
		j.command(free, inv)
	case isCommand:
		a.work.Go(func() { j.command(free, inv) })
	case may:
		j.inline(free)
	default:
		j.queueTurn(free)
	}
}

// inLane puts a command into the lane. What it would stop goes on where it is refused.
func (j *job) inLane(ctx context.Context, inv commands.Invocation) {
	t := session.Task{Front: true, Owner: j.in.Sender.ID, Run: func(ctx context.Context) { j.command(ctx, inv) }}
	if inv.Spec.Stops {
		if refusal, ok := j.a.commands.Check(ctx, inv, j.call()); !ok {
			j.a.work.Go(func() { j.done(ctx, j.reply(ctx, refusal, "")) })
			return
		}
		t.Preempt = llm.ErrStopped
	}
	j.submit(ctx, t)
}

// inOrder reports whether a command has to be done before the message behind it is looked at, because it
// changes what becomes of it. All of these are quick.
func inOrder(name string) bool {
	return slices.Contains([]string{"stop", "queue", "model", "think", "verbose", "usage", "activation"}, name)
}

// isCommand reports whether a text is for the bot itself and not for a model.
func (a *App) isCommand(text string) bool {
	_, command := a.commands.Match(text)
	_, ballot := a.approvals.match(text)
	_, press := a.offers.match(text)
	return command || ballot || press
}

// Withdraw implements inbound.Withdrawer: a message that was taken back leaves the queue. Of one that
// leaves it at this moment the turn is told by inbound when it would begin.
func (a *App) Withdraw(seq int64) {
	v, ok := a.turns.queued.LoadAndDelete(inbound.TurnID(seq))
	if !ok {
		return
	}
	j := v.(*job)
	if a.lanes.Withdraw(j.key, func(item any) bool { return item == j }) > 0 {
		j.cancelTyping()
		j.finished(0)
	}
}

// job is one inbound message on its way to an answer.
type job struct {
	a *App
	belonging
	seq       int64
	turn      string
	owner     bool
	again     bool // an earlier process has begun with it
	directed  bool // an earlier process has done what it says to the bot
	in        chat.Inbound
	overheard []inbound.HistoryLine // what was said in the group before
	// text is what a model is asked: in.Text without directives, or with follows what a command left.
	text    string
	follows bool
	steers  bool // the text is for the turn that runs, whatever the queue mode is
	first   bool // it goes before what waits: it has waited before
	handed  bool // the command has put itself into the queue
	once    commands.Once
	told    []*job         // that gave way in a full queue: the turn shows a line of each above this message
	at      time.Time      // when it came here
	out     *delivery.Turn // its signs of work; nil = it was not queued
}

func (a *App) newJob(m inbound.Message) *job {
	return &job{
		a: a, belonging: a.belongs(m.In), seq: m.Seq, turn: inbound.TurnID(m.Seq), owner: m.Owner, again: m.Attempts > 0,
		directed: m.Directed, in: m.In, text: m.In.Text, overheard: m.History, at: a.opts.Clock.Now(),
	}
}

// call is the message as a command sees it.
func (j *job) call() commands.Call {
	return commands.Call{Agent: j.agent, Key: j.key, Parent: j.parent, To: j.in.Address, In: j.in, Owner: j.owner}
}

// queueTurn puts a turn into the lane; typing starts now, not when it is the turn's turn.
func (j *job) queueTurn(ctx context.Context) {
	if _, twice := j.a.turns.queued.LoadOrStore(j.turn, j); twice {
		return
	}
	j.out = j.a.delivery.Begin(j.in.Address, &j.in, j.turn)
	j.submit(ctx, j.task(ctx))
}

func (j *job) submit(ctx context.Context, t session.Task) {
	err := j.a.lanes.Submit(j.key, t)
	if err == nil {
		return
	}
	j.a.turns.queued.CompareAndDelete(j.turn, j)
	j.cancelTyping()
	if !errors.Is(err, session.ErrDraining) { // else it stays in the journal for the next start
		j.failed(ctx, err, j.say(ctx, chat.Error, textBusy))
	}
}

// dropped ends a message that left the queue without a turn: it was stopped, or it gave way and is
// forgotten. One that is to be told of in a line is not at its end: until the turn that does so has ended
// it is open in the journal, so that no crash loses it.
func (j *job) dropped(cause error) {
	j.cancelTyping()
	if errors.Is(cause, session.ErrDigested) {
		return
	}
	j.a.turns.queued.CompareAndDelete(j.turn, j)
	if !errors.Is(cause, llm.ErrShutdown) { // then it stays in the journal for the next start
		j.done(context.Background(), 0)
	}
}

// refuse ends a command of somebody who may not use any.
func (j *job) refuse(ctx context.Context) {
	replies := 0
	if j.in.Via != "" {
		replies = j.say(ctx, chat.Command, textNoCommands)
	}
	j.done(ctx, replies)
}

// command runs a slash command and says its reply. One whose work ends with the lane's context is, when
// the bot shuts down, left for the next start.
func (j *job) command(lane context.Context, inv commands.Invocation) {
	ctx := context.WithoutCancel(lane)
	work := ctx
	if inv.Spec.Halts {
		work = lane
	}
	if _, err := j.a.inbound.Dispatched(ctx, j.seq); err != nil {
		j.notBegun(ctx, err)
		return
	}
	if err := j.ensure(ctx); err != nil {
		j.failed(ctx, err, j.say(ctx, chat.Notice, fmt.Sprintf(textNotStored, j.turn)))
		return
	}
	j.renewFor(ctx, inv)
	j.a.commanding.Store(j.in.EventKey, j)
	r := j.a.commands.Run(work, inv, j.call())
	j.a.commanding.Delete(j.in.EventKey)
	if errors.Is(context.Cause(work), llm.ErrShutdown) {
		j.finished(0)
		return
	}
	if r.Text == "" && j.in.Via != "" && (r.Follow != "" || len(r.Media) == 0) {
		r.Text = textFollows // somebody waits for the reply to an interaction
	}
	part := ""
	if r.Follow != "" || j.handed {
		part = "-command" // the turn's answer is still to come: a restart must not take this for it
	}
	said := j.reply(ctx, r, part)
	switch {
	case j.handed:
	case r.Follow == "":
		j.done(ctx, said)
	default:
		follow := *j
		follow.text, follow.follows = r.Follow, true
		follow.queueTurn(ctx)
	}
}

// ensure makes sure that there is a session for commands to work on.
func (j *job) ensure(ctx context.Context) error {
	_, _, err := j.a.sessions.Ensure(ctx, session.Seed{Key: j.key, AgentID: j.agent, Parent: j.parent, Address: j.in.Address})
	if err != nil {
		j.a.log.ErrorContext(ctx, "session_not_stored", "turn", j.turn, "error", err.Error())
	}
	return err
}

// reply says what a command replied and returns how many replies that makes. part tells several replies
// to one message apart.
func (j *job) reply(ctx context.Context, r commands.Reply, part string) int {
	if r.Text == "" && len(r.Media) == 0 {
		return 0
	}
	err := j.a.delivery.Send(ctx, chat.Outbound{
		To: j.in.Address, Class: chat.Command, Markdown: r.Text, Buttons: r.Buttons, Media: r.Media, ReplyTo: j.in.ID,
		TurnID: j.turn + part, Via: j.in.Via, For: j.in.Sender.ID,
	})
	if err != nil {
		j.a.log.ErrorContext(ctx, "command_reply_not_sent", "turn", j.turn, "error", err.Error())
		return j.say(ctx, chat.Notice, fmt.Sprintf(textNotStored, j.turn))
	}
	return 1
}

// say says a text about the message outside a turn and returns how many replies that makes: a notice is none.
func (j *job) say(ctx context.Context, class chat.Class, text string) int {
	o := chat.Outbound{To: j.in.Address, Class: class, Markdown: text, ReplyTo: j.in.ID, TurnID: j.turn}
	if class == chat.Command {
		o.Via, o.For = j.in.Via, j.in.Sender.ID
	}
	err := j.a.delivery.Send(ctx, o)
	if err != nil {
		j.a.log.ErrorContext(ctx, "message_not_sent", "turn", j.turn, "error", err.Error())
		return 0
	}
	if class == chat.Notice {
		return 0
	}
	return 1
}

func (j *job) done(ctx context.Context, replies int) {
	if err := j.a.inbound.Done(ctx, j.seq); err != nil {
		j.a.log.ErrorContext(ctx, "journal_not_written", "turn", j.turn, "error", err.Error())
	}
	j.finished(replies)
}

func (j *job) failed(ctx context.Context, why error, replies int) {
	if err := j.a.inbound.Failed(ctx, j.seq, why); err != nil {
		j.a.log.ErrorContext(ctx, "journal_not_written", "turn", j.turn, "error", err.Error())
	}
	j.finished(replies)
}

// finished tells the channels that show it that the work on a message has ended.
func (j *job) finished(replies int) {
	switch j.in.Address.Channel {
	case web.Channel:
		j.a.web.Finished(j.in.Address, j.in.ID, replies)
	case console.Channel:
		for _, c := range j.a.consoles {
			if c.Traits().Account == j.in.Address.Account {
				c.Finished(j.in.Address, j.in.ID, replies)
			}
		}
	}
}

// working shows that a model works on the message.
func (j *job) working() {
	if j.out != nil {
		j.out.Working()
	}
}

// cancelTyping takes back the sign of work.
func (j *job) cancelTyping() {
	if j.out != nil {
		j.out.Cancel()
	}
}

// answerState translates what delivery knows of a turn's answer for the journal.
func (a *App) answerState(ctx context.Context, turn string) (inbound.Answer, error) {
	s, err := a.delivery.AnswerState(ctx, a.joined.lead(turn))
	switch s {
	case delivery.AnswerSent:
		return inbound.AnswerSent, err
	case delivery.AnswerUnknown:
		return inbound.AnswerUnknown, err
	}
	return inbound.AnswerNone, err
}

// moved follows a conversation to its new id, whichever agents talk there.
func (a *App) moved(ctx context.Context, from chat.Address, conversation string) {
	cfg := a.cfg()
	to := from
	to.Conversation = conversation
	news, err := a.inbound.Moved(ctx, from, conversation)
	if err != nil {
		a.log.WarnContext(ctx, "conversation_not_moved", "channel", from.Channel, "error", err.Error())
	}
	if news {
		a.tellMoved(ctx, from, conversation)
	}
	for _, agent := range cfg.AgentIDs() {
		err := a.sessions.Rename(ctx, session.Key(agent, from, cfg.Session), session.Key(agent, to, cfg.Session))
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			a.log.WarnContext(ctx, "session_not_renamed", "error", err.Error())
		}
	}
	if err := a.jobs.Move(ctx, from, conversation); err != nil {
		a.log.WarnContext(ctx, "tasks_not_moved", "error", err.Error())
	}
}

// drainTimeout is how long a stop may let turns finish.
func (a *App) drainTimeout() time.Duration { return a.cfg().Shutdown.Drain }
