package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/channels/console"
	"understudy/channels/web"
	"understudy/chat"
	"understudy/commands"
	"understudy/delivery"
	"understudy/delivery/markup"
	"understudy/failover"
	"understudy/gateway"
	"understudy/inbound"
	"understudy/llm"
	"understudy/notices"
	"understudy/reply"
	"understudy/session"
)

// textBusy is said when a conversation has more waiting messages than it may.
const textBusy = "📥 Too many messages are waiting here; I dropped this one. Please send it again in a moment."

// textNotStored is said when an answer could not be handed over for delivery; it takes the reference.
const textNotStored = "⚠️ I could not store my answer, so I did not send it. Please send your message again. Reference: %s."

// Handle implements inbound.Handler: a command is answered at once, anything else becomes a turn in
// its session's lane.
func (a *App) Handle(ctx context.Context, m inbound.Message) {
	cfg := a.cfg()
	agent := cfg.DefaultAgent()
	j := &job{
		a: a, seq: m.Seq, turn: inbound.TurnID(m.Seq), agent: agent, owner: m.Owner, in: m.In, text: m.In.Text, at: a.opts.Clock.Now(),
		key: session.Key(agent, m.In.Address, cfg.Session), parent: session.ParentKey(agent, m.In.Address, cfg.Session),
	}
	a.metrics.MessageReceived(m.In.Address.Channel, string(m.In.Address.Kind))
	inv, isCommand := a.commands.Match(m.In.Text)
	switch {
	case !isCommand:
		j.queueTurn(ctx)
	case inv.Spec.Lane:
		t := session.Task{Front: true, Owner: j.in.Sender.ID, Run: func(ctx context.Context) { j.command(ctx, inv) }}
		if inv.Spec.Stops {
			t.Preempt = llm.ErrStopped
		}
		j.submit(ctx, t)
	default:
		a.work.Go(func() { j.command(context.WithoutCancel(ctx), inv) })
	}
}

// job is one inbound message on its way to an answer.
type job struct {
	a           *App
	seq         int64
	turn        string
	agent       string
	key, parent string
	owner       bool
	in          chat.Inbound
	text        string
	at          time.Time // when it came here
}

// queueTurn puts a turn into the lane; typing starts now, not when it is the turn's turn.
func (j *job) queueTurn(ctx context.Context) {
	if _, again := j.a.waiting.Load(j.turn); !again {
		j.a.waiting.Store(j.turn, j.a.delivery.Begin(j.in.Address, &j.in, j.turn))
	}
	j.submit(ctx, session.Task{Owner: j.in.Sender.ID, Run: j.run, Dropped: j.dropped})
}

func (j *job) submit(ctx context.Context, t session.Task) {
	err := j.a.lanes.Submit(j.key, t)
	switch {
	case err == nil:
	case errors.Is(err, session.ErrDraining):
		j.cancelTyping() // it stays in the journal for the next start
	default:
		j.cancelTyping()
		j.failed(ctx, err, j.say(ctx, chat.Error, textBusy))
	}
}

// dropped ends a message that was taken out of the queue.
func (j *job) dropped(cause error) {
	ctx := context.Background()
	j.cancelTyping()
	switch {
	case errors.Is(cause, llm.ErrShutdown): // it stays in the journal for the next start
	case errors.Is(cause, session.ErrFull):
		j.failed(ctx, cause, j.say(ctx, chat.Error, textBusy))
	default:
		j.done(ctx, 0)
	}
}

// run answers the message.
func (j *job) run(ctx context.Context) {
	m, err := j.a.inbound.Dispatched(context.WithoutCancel(ctx), j.seq)
	if err != nil {
		j.cancelTyping()
		j.notBegun(ctx, err)
		return
	}
	if j.text == j.in.Text { // an edit may have changed the message while it waited
		j.in, j.text = m.In, m.In.Text
	}
	j.renew(context.WithoutCancel(ctx))
	began := j.a.opts.Clock.Now()
	o, err := j.a.reply.Run(ctx, reply.Request{
		ID: j.turn, Agent: j.agent, Key: j.key, Parent: j.parent, To: j.in.Address, In: &j.in, Text: j.text,
	})
	ctx = context.WithoutCancel(ctx)
	j.a.metrics.TurnEnded(gateway.Turn{
		Channel: j.in.Address.Channel, Model: o.Model.String(), Outcome: o.Status.String(), Trigger: "message",
		Duration: j.a.opts.Clock.Since(began), Waited: began.Sub(j.at),
	})
	j.a.countTokens(o.Model, o.Usage)
	switch {
	case err != nil:
		j.a.log.ErrorContext(ctx, "turn_not_delivered", "turn", j.turn, "error", err.Error())
		j.failed(ctx, err, j.say(ctx, chat.Notice, fmt.Sprintf(textNotStored, j.turn))) // needs no outbox, which may be what failed
	case o.Status == reply.Interrupted:
		j.finished(0) // the next start runs it again
	case o.Status == reply.Answered, o.Status == reply.Failed:
		j.done(ctx, 1)
	default:
		j.done(ctx, 0)
	}
}

// notBegun ends the work on a message that is closed already, or that the journal could not begin:
// that one is answered by the next start.
func (j *job) notBegun(ctx context.Context, err error) {
	if !errors.Is(err, inbound.ErrClosed) {
		j.a.log.ErrorContext(ctx, "journal_not_written", "turn", j.turn, "error", err.Error())
	}
	j.finished(0)
}

// command runs a slash command and says its reply.
func (j *job) command(ctx context.Context, inv commands.Invocation) {
	ctx = context.WithoutCancel(ctx)
	if _, err := j.a.inbound.Dispatched(ctx, j.seq); err != nil {
		j.notBegun(ctx, err)
		return
	}
	if _, _, err := j.a.sessions.Ensure(ctx, session.Seed{Key: j.key, AgentID: j.agent, Parent: j.parent, Address: j.in.Address}); err != nil {
		j.a.log.ErrorContext(ctx, "session_not_stored", "turn", j.turn, "error", err.Error())
		j.failed(ctx, err, j.say(ctx, chat.Notice, fmt.Sprintf(textNotStored, j.turn)))
		return
	}
	r := j.a.commands.Run(ctx, inv, commands.Call{Agent: j.agent, Key: j.key, Parent: j.parent, To: j.in.Address, In: j.in, Owner: j.owner})
	said := 0
	if r.Text != "" {
		said = 1
		o := chat.Outbound{To: j.in.Address, Class: chat.Command, Markdown: r.Text, Buttons: r.Buttons, ReplyTo: j.in.ID, TurnID: j.turn}
		if r.Follow != "" {
			o.TurnID += "-command" // the turn's answer is still to come: a restart must not take this for it
		}
		if err := j.a.delivery.Send(ctx, o); err != nil {
			j.a.log.ErrorContext(ctx, "command_reply_not_sent", "turn", j.turn, "error", err.Error())
			said = j.say(ctx, chat.Notice, fmt.Sprintf(textNotStored, j.turn))
		}
	}
	if r.Follow == "" {
		j.done(ctx, said)
		return
	}
	follow := *j
	follow.text = r.Follow
	follow.queueTurn(ctx)
}

// say sends a text about the message outside a turn and returns how many replies that makes: a notice is none.
func (j *job) say(ctx context.Context, class chat.Class, text string) int {
	err := j.a.delivery.Send(ctx, chat.Outbound{To: j.in.Address, Class: class, Markdown: text, ReplyTo: j.in.ID, TurnID: j.turn})
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

// cancelTyping takes back the sign of work of a message that will get no turn.
func (j *job) cancelTyping() {
	if t, ok := j.a.waiting.LoadAndDelete(j.turn); ok {
		t.(*delivery.Turn).Cancel()
	}
}

// replyDeps says what reply works with.
func (a *App) replyDeps() reply.Deps {
	return reply.Deps{
		Failover: a.failover, Sessions: a.sessions,
		Begin: func(to chat.Address, in *chat.Inbound, turn string) reply.Delivery {
			if t, ok := a.waiting.LoadAndDelete(turn); ok {
				return t.(*delivery.Turn)
			}
			return a.delivery.Begin(to, in, turn)
		},
		Agent:    a.replyAgent,
		Models:   func() failover.Models { return a.current.Load() },
		Notices:  func() notices.Config { return a.cfg().Notices },
		Fetch:    a.fetch,
		Tools:    a.tools(),
		Clock:    a.opts.Clock,
		Log:      a.log,
		IsSilent: markup.IsSilent,
		Clean:    markup.StripScaffolding,
	}
}

// replyAgent is an agent's configuration as a turn sees it.
func (a *App) replyAgent(id string) reply.Agent {
	s := a.current.Load()
	x := s.cfg.Agent(id)
	return reply.Agent{
		System: x.SystemPrompt, Models: x.Models, ImageModel: x.ImageModels, Timeout: x.Timeout, Zone: x.Timezone,
		Compaction: s.compaction(),
	}
}

// answerState translates what delivery knows of a turn's answer for the journal.
func (a *App) answerState(ctx context.Context, turn string) (inbound.Answer, error) {
	s, err := a.delivery.AnswerState(ctx, turn)
	switch s {
	case delivery.AnswerSent:
		return inbound.AnswerSent, err
	case delivery.AnswerUnknown:
		return inbound.AnswerUnknown, err
	}
	return inbound.AnswerNone, err
}

// uncertain is told of an answer that was perhaps said. After a restart its sender hears of it; the
// conversation remembers it in any case, since the transcript was written before.
func (a *App) uncertain(ctx context.Context, o chat.Outbound, restarted bool) {
	if restarted {
		a.inbound.Uncertain(ctx, o)
	}
}

// moved follows a conversation to its new id.
func (a *App) moved(ctx context.Context, from chat.Address, conversation string) {
	cfg := a.cfg()
	to := from
	to.Conversation = conversation
	agent := cfg.DefaultAgent()
	err := a.sessions.Rename(ctx, session.Key(agent, from, cfg.Session), session.Key(agent, to, cfg.Session))
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		a.log.WarnContext(ctx, "session_not_renamed", "error", err.Error())
	}
}

// drainTimeout is how long a stop may let turns finish.
func (a *App) drainTimeout() time.Duration { return a.cfg().Shutdown.Drain }
