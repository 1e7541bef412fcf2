package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"understudy/chat"
	"understudy/failover"
	"understudy/llm"
	"understudy/session"
)

// maxSteps bounds the model requests of one turn: a model that calls tools for ever is stopped.
const maxSteps = 25

// turn is one Request being answered.
type turn struct {
	r     *Runner
	req   Request
	log   *slog.Logger
	cfg   Agent
	tools []Tool
	sess  session.Session
	// inherited is the choice that a thread takes over from its parent; zero = none.
	inherited session.Override
	out       Delivery
	aloud     Voice // of the answer
	run       *failover.Run
	watch     watch

	entries []session.Entry // the conversation before this turn
	fresh   []session.Entry // what this turn adds to it
	request llm.Request
	began   time.Time
	usage   llm.Usage
	spent   []session.Spend
	focus   string // of a compaction that the user asked for
	gap     bool   // text of an earlier step was streamed: the next piece begins a paragraph
	preview streamed
	// steered are messages that came while a tool ran and that the next step is to see.
	steered  []Said
	nSteered int
	// late counts those that were heard since a tool ran last, so that nothing was done for them yet;
	// lateAt is where the first of them stands in fresh.
	late, lateAt int
	spoken       []spoken // where in fresh the messages of people stand
	// summarised tells that a compaction happened in this turn; tight, that results of tools are shown
	// shortened because nothing else helped.
	summarised, tight bool
	acted             bool // a tool ran
	files             attached
	offer             *Offer
}

// Run answers one request. Everything a person should see has been handed to delivery when it
// returns; its error is a fault of ours that kept even that from happening.
func (r *Runner) Run(ctx context.Context, q Request) (Outcome, error) {
	t := r.begin(q)
	t.out = r.deps.Begin(q.To, q.In, q.ID)
	defer t.out.Cancel() // for the ways out that say nothing
	defer t.beginWatch(ctx)()
	if err := t.open(ctx); err != nil {
		return t.fail(ctx, fmt.Errorf("open session: %w", err))
	}
	if h, ok := t.out.(Holder); ok && t.aloud.Certain {
		h.Hold()
	}
	if t.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = r.deps.Clock.WithTimeout(ctx, t.cfg.Timeout-r.deps.Clock.Since(t.began), llm.ErrTurnTimeout)
		defer cancel()
	}
	answer, err := t.work(ctx)
	if err != nil {
		return t.fail(ctx, err)
	}
	return t.answered(ctx, answer)
}

// work gets the answer. A crash in it is a failure of this turn only.
func (t *turn) work(ctx context.Context) (a failover.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.log.ErrorContext(ctx, "turn_panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errCrashed
		}
	}()
	if err := t.said(ctx); err != nil {
		return a, err
	}
	plan := t.prepare(ctx)
	t.doing("🤖", plan.Chain[0].String())
	t.run = t.r.deps.Failover.Begin(ctx, plan, t)
	defer t.run.Finish()
	t.dropLostPin(ctx)
	return t.loop(ctx)
}

// begin makes the turn of a request.
func (r *Runner) begin(q Request) *turn {
	t := &turn{r: r, req: q, cfg: r.deps.AgentAt(q.Agent, q.To), began: r.deps.Clock.Now()}
	t.cfg.Compaction = t.cfg.Compaction.withDefaults()
	if q.Timeout > 0 {
		t.cfg.Timeout = q.Timeout
	}
	t.tools = r.toolbox(q, t.cfg)
	t.log = r.deps.Log.With("agent", q.Agent, "session", q.Key, "turn", q.ID)
	return t
}

// add puts a message into the conversation, in the form in which the transcript will give it back: a
// later request must not differ from this one by a blank in a call.
func (t *turn) add(m llm.Message, by llm.ModelRef, usage *llm.Usage) {
	t.fresh = append(t.fresh, session.Entry{
		Kind: session.KindMessage, Message: stored(m), Model: by, Usage: usage, At: t.r.deps.Clock.Now(),
	})
}

// stored is m as it is after it was written down and read again.
func stored(m llm.Message) llm.Message {
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		switch {
		case p.ToolCall != nil:
			c := *p.ToolCall
			c.Name, c.Input = callable(c.Name), storedJSON(c.Input)
			m.Parts[i].ToolCall = &c
		case p.ToolResult != nil:
			x := *p.ToolResult
			x.Name = callable(x.Name)
			m.Parts[i].ToolResult = &x
		case p.Reasoning != nil:
			x := *p.Reasoning
			x.Opaque = storedJSON(x.Opaque)
			m.Parts[i].Reasoning = &x
		case p.Text != "":
			m.Parts[i].Text = strings.ToValidUTF8(p.Text, "\uFFFD")
		}
	}
	return m
}

// callable returns a tool's name in the alphabet of model APIs. A model may invent one that no API takes
// back: every later request would be refused.
func callable(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), 64)]
}

func storedJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	b, err := json.Marshal(raw)
	if err != nil { // not JSON: the store would refuse the whole turn
		return json.RawMessage("{}")
	}
	return b
}

// prepare builds the first request, shortens the conversation if it will hardly fit, and returns the
// plan. A compaction moves an automatic pin, so the plan is made after it.
func (t *turn) prepare(ctx context.Context) failover.Plan {
	plan := t.plan(t.sess)
	t.request = t.prompt()
	switch {
	case !t.tooLong(plan.Chain[0]):
	case t.req.guest():
		t.forgetOlder(plan.Chain[0])
	case t.compact(ctx, plan.Chain[0]) == nil:
		t.request = t.prompt()
		plan = t.plan(t.sess)
	}
	plan.Tokens = estimate(t.request)
	return plan
}

// open loads the session and what was said in it.
func (t *turn) open(ctx context.Context) error {
	sessions := t.r.deps.Sessions
	s, _, err := sessions.Ensure(ctx, t.seed())
	if err != nil {
		return err
	}
	if !t.req.internal() && !t.req.Program {
		if err := sessions.Touch(ctx, s.Key, t.began); err != nil {
			return err
		}
	}
	if s.SwitchPending && !t.req.internal() { // the choice is read now; nothing is left to switch to
		if s, _, err = sessions.TakeSwitch(ctx, s.Key); err != nil {
			return err
		}
	}
	return t.read(ctx, s)
}

func (t *turn) seed() session.Seed {
	return session.Seed{Key: t.req.Key, AgentID: t.req.Agent, Parent: t.req.Parent, Address: t.req.To}
}

// read takes in a session as it is.
func (t *turn) read(ctx context.Context, s session.Session) (err error) {
	if t.sess, err = t.inherit(ctx, s); err != nil {
		return err
	}
	if t.entries, err = t.r.deps.Sessions.Load(ctx, s.ID); err != nil {
		return err
	}
	if t.req.Tail > 0 {
		t.entries = session.Tail(t.entries, t.req.Tail)
	}
	t.aloud = t.r.deps.Voice(t.speechRequest())
	return nil
}

// inherit gives a thread without a choice of its own that of its parent.
func (t *turn) inherit(ctx context.Context, s session.Session) (session.Session, error) {
	o, from, err := t.r.deps.Sessions.Selection(ctx, s)
	s.Override, t.inherited = o, session.Override{}
	if from != s.Key {
		t.inherited = o
	}
	return s, err
}

// loop asks the models until one answers without calling a tool.
func (t *turn) loop(ctx context.Context) (failover.Answer, error) {
	for range maxSteps {
		a, err := t.run.Ask(ctx, t.request)
		if err != nil {
			return a, err
		}
		t.progress()
		t.usage = t.usage.Add(a.Usage)
		t.spend(a.Served, t.req.purpose(), a.Usage)
		t.add(a.Message, a.Served, &a.Usage)
		if len(a.Calls) == 0 {
			return a, nil
		}
		t.gap = t.visible() != ""
		t.add(t.runTools(ctx, a.Calls), llm.ModelRef{}, nil)
		if err := t.hear(ctx); err != nil {
			return a, err
		}
		t.request = t.prompt()
		if ctx.Err() != nil {
			return a, context.Cause(ctx)
		}
	}
	return failover.Answer{}, errTooManySteps
}

var errTooManySteps = errors.New("the model kept calling tools")

// outcome begins the outcome of the turn.
func (t *turn) outcome(s Status) Outcome {
	o := Outcome{
		Status: s, Usage: t.usage, CostUSD: t.cost(), Acted: t.acted,
		Steered: t.nSteered + len(t.steered), // those that a crash left lying too
	}
	if t.run != nil {
		o.Trail, o.Selected = t.run.Trail(), t.run.Plan().Selected
	}
	return o
}

// outbound addresses a text to the turn's place.
func (t *turn) outbound(class chat.Class, text string) chat.Outbound {
	o := chat.Outbound{To: t.req.To, Class: class, Markdown: text, TurnID: t.req.ID}
	if t.req.In != nil {
		o.ReplyTo = t.req.In.ID
	}
	return o
}

// plannedNow returns the plan in force, or an empty one when the turn never got so far.
func (t *turn) plannedNow() failover.Plan {
	if t.run == nil {
		return failover.Plan{}
	}
	return t.run.Plan()
}
