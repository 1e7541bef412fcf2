package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"understudy/chat"
	"understudy/commands"
	"understudy/config"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/notices"
	"understudy/reply"
	"understudy/session"
)

// process is what a restart ends: everything that is kept in memory only.
type process struct {
	lanes    *session.Lanes
	failover *failover.Runner
	reply    *reply.Runner
	commands *commands.Registry
	draining bool
}

// sorted returns the events in order of time; those of one moment stay in the order of the file.
func (sc *scenario) sorted() []event {
	events := slices.Clone(sc.events)
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	return events
}

// start brings a process up.
func (s *stage) start() error {
	m, err := newModels(s.world, s.config, s.stored)
	if err != nil {
		return err
	}
	s.models = m
	p := &process{lanes: session.NewLanes(session.LaneConfig{}, s.clock.Clock(), s.log)}
	p.failover = failover.New(failover.Deps{
		Store: func(agent string) (failover.Store, error) {
			if a, ok := s.auth[agent]; ok {
				return a, nil
			}
			return s.auth[s.config.DefaultAgent()], nil
		},
		Models:   func() failover.Models { return s.models },
		Settings: s.settings,
		Clock:    s.clock.Clock(), Log: s.log, Observer: s.trace,
	})
	p.commands = commands.New(s.commandDeps(p))
	p.reply = reply.New(reply.Deps{
		Failover: p.failover, Sessions: s.sessions,
		Begin: func(to chat.Address, _ *chat.Inbound, turn string) reply.Delivery {
			return &stand{s.trace, failover.Ref{Session: to.Conversation, Turn: turn}}
		},
		Agent:   s.agent,
		Models:  func() failover.Models { return s.models },
		Notices: func() notices.Config { return s.config.Notices },
		Tools:   s.tools(), Compact: alwaysCompletes{},
		Clock: s.clock.Clock(), Log: s.log,
	})
	s.process = p
	again := s.interrupted
	s.interrupted = nil
	for _, w := range again {
		s.submit(w)
	}
	return nil
}

func (s *stage) settings() *failover.Settings {
	set := &failover.Settings{
		Rules: s.config.Rules(), Order: map[string][]llm.ProfileID{}, Declared: map[string][]policy.Declared{}, SkipTTL: s.config.Env.SkipTTL,
	}
	for _, id := range s.config.AuthProviders() {
		pool := s.config.Pool(id)
		if pool.Configured != nil {
			set.Order[id] = pool.Configured
		}
		set.Declared[id] = pool.Declared
	}
	return set
}

func (s *stage) agent(id string) reply.Agent {
	a := s.config.Agent(id)
	return reply.Agent{System: a.SystemPrompt, Models: a.Models, ImageModel: a.ImageModels, Timeout: a.Timeout, Zone: time.UTC}
}

// tools are the functions that the scenario's answers call; each merely runs.
func (s *stage) tools() []reply.Tool {
	var list []reply.Tool
	seen := map[string]bool{}
	for _, r := range s.sc.world {
		if name := r.answer.tool; name != "" && !seen[name] {
			seen[name] = true
			list = append(list, reply.Tool{
				Tool: llm.Tool{Name: name, Description: "a tool of the scenario", Schema: []byte(`{"type":"object"}`)},
				Run:  func(context.Context, reply.Call) (string, error) { return "done", nil },
			})
		}
	}
	return list
}

// apply makes an event happen.
func (s *stage) apply(ctx context.Context, e event) error {
	switch e.kind {
	case eventUser:
		return s.says(ctx, e)
	case eventCron, eventHeartbeat:
		s.turns++
		s.submit(work{id: strconv.Itoa(s.turns), event: e, text: e.text})
	case eventStop:
		s.process.lanes.Stop(e.session, "")
	case eventRestart:
		s.clock.Clock().Go(func() { s.restart(ctx) })
	case eventConfig:
		s.config = e.config
		m, err := newModels(s.world, s.config, s.stored)
		if err != nil {
			return err
		}
		s.models = m
	case eventLogin:
		return s.login(ctx, e.profile)
	case eventRemove:
		return s.auth[s.config.DefaultAgent()].Remove(ctx, e.profile)
	case eventCompact:
		if _, err := s.ensure(ctx, e.session); err != nil {
			return err
		}
		_, err := s.sessions.Update(ctx, e.session, func(x *session.Session) error { x.Compactions++; return nil })
		return err
	}
	return nil
}

// says is a user's message: a command is answered at once, anything else becomes a turn.
func (s *stage) says(ctx context.Context, e event) error {
	ses, err := s.ensure(ctx, e.session)
	if err != nil {
		return err
	}
	inv, ok := s.process.commands.Match(e.text)
	if !ok {
		s.turns++
		s.submit(work{id: strconv.Itoa(s.turns), event: e, text: e.text})
		return nil
	}
	call := commands.Call{Agent: ses.AgentID, Key: ses.Key, To: ses.Address, Owner: true, In: chat.Inbound{
		ID: "command", Address: ses.Address, Text: e.text, Sender: chat.Sender{ID: e.session, Local: true},
	}}
	run := func(ctx context.Context) {
		r := s.process.commands.Run(ctx, inv, call)
		if r.Text != "" {
			s.trace.add(line{kind: "command", session: e.session, text: r.Text})
		}
		if r.Follow != "" {
			follow := e
			follow.text = r.Follow
			s.turns++
			s.submit(work{id: strconv.Itoa(s.turns), event: follow, text: r.Follow})
		}
	}
	if inv.Spec.Lane {
		return s.process.lanes.Submit(e.session, session.Task{Front: true, Preempt: llm.ErrStopped, Owner: e.session, Run: run})
	}
	s.clock.Clock().Go(func() { run(ctx) })
	return nil
}

func (s *stage) ensure(ctx context.Context, name string) (session.Session, error) {
	ses, _, err := s.sessions.Ensure(ctx, session.Seed{Key: name, AgentID: s.config.DefaultAgent(), Address: address(name)})
	return ses, err
}

// submit queues a turn in its session's lane.
func (s *stage) submit(w work) {
	s.trace.begin(w.id)
	if s.process.draining {
		s.interrupted = append(s.interrupted, w)
		return
	}
	pool := session.Interactive
	if w.event.kind != eventUser {
		pool = session.Background
	}
	ref := failover.Ref{Session: w.event.session, Turn: w.id}
	err := s.process.lanes.Submit(w.event.session, session.Task{
		Pool: pool, Owner: w.event.session, Run: func(ctx context.Context) { s.turn(ctx, w) },
		Dropped: func(cause error) {
			if errors.Is(cause, llm.ErrShutdown) {
				s.interrupted = append(s.interrupted, w)
				return
			}
			s.trace.ended(ref, "stopped", llm.ModelRef{}, "", "", time.Time{})
		},
	})
	if err != nil {
		s.trace.ended(ref, "failed", llm.ModelRef{}, llm.ReasonInternal, err.Error(), time.Time{})
	}
}

// turn runs one turn and writes down how it ended.
func (s *stage) turn(ctx context.Context, w work) {
	ref := failover.Ref{Session: w.event.session, Turn: w.id}
	q, err := s.request(ctx, w)
	if err != nil {
		s.trace.ended(ref, "failed", llm.ModelRef{}, llm.ReasonModelNotFound, err.Error(), time.Time{})
		return
	}
	o, err := s.process.reply.Run(ctx, q)
	switch {
	case err != nil:
		s.trace.ended(ref, "failed", llm.ModelRef{}, llm.ReasonInternal, err.Error(), time.Time{})
	case o.Status == reply.Interrupted:
		s.interrupted = append(s.interrupted, w)
	case o.Status == reply.Stopped:
		s.trace.ended(ref, "stopped", llm.ModelRef{}, "", "", time.Time{})
	case o.Status == reply.Failed:
		s.trace.ended(ref, "failed", llm.ModelRef{}, o.Reason, o.Text, o.RetryAt)
	default:
		s.trace.ended(ref, "answer", o.Model, "", o.Text, time.Time{})
	}
}

// request builds the turn that an event asks for.
func (s *stage) request(ctx context.Context, w work) (reply.Request, error) {
	ses, err := s.ensure(ctx, w.event.session)
	if err != nil {
		return reply.Request{}, err
	}
	q := reply.Request{ID: w.id, Agent: ses.AgentID, Key: ses.Key, To: ses.Address, Text: w.text}
	switch w.event.kind {
	case eventCron:
		q.Kind = reply.Cron
		q.Selection, err = s.cronSelection(ses, w.event)
	case eventHeartbeat:
		q.Kind, q.Text = reply.Heartbeat, "Is there anything that needs attention? If not, answer HEARTBEAT_OK."
		q.Selection, err = s.heartbeatSelection(ctx, ses)
	default:
		q.In = &chat.Inbound{
			ID: w.id, Address: ses.Address, Text: w.text, At: w.event.at,
			Sender: chat.Sender{ID: w.event.session, Local: true},
		}
		if w.event.image {
			q.In.Attachments = []chat.Attachment{{Name: "picture.png", MediaType: "image/png", Size: 1, Data: []byte{0}}}
		}
	}
	return q, err
}

// cronSelection applies the rules for scheduled tasks (spec/failover.md §3, spec/chat.md §5.1).
func (s *stage) cronSelection(ses session.Session, e event) (*policy.Selection, error) {
	agent := s.config.Agent(ses.AgentID)
	sel := policy.Select(override(ses), agent.Models)
	if e.model != "" {
		choice, err := s.config.Resolve(e.model, config.Known{})
		if err != nil {
			return nil, fmt.Errorf("the task's model %q cannot be used: %w", e.model, err)
		}
		sel = policy.Selection{Ref: choice.Ref, Source: policy.SourceCron}
	}
	if e.chain != nil {
		sel.Source, sel.Fallbacks = policy.SourceCron, []llm.ModelRef{}
		for _, text := range e.chain {
			choice, err := s.config.Resolve(text, config.Known{})
			if err != nil {
				return nil, fmt.Errorf("the task's fallback %q cannot be used: %w", text, err)
			}
			sel.Fallbacks = append(sel.Fallbacks, choice.Ref)
		}
	}
	return &sel, nil
}

func override(s session.Session) policy.Override {
	return policy.Override{Ref: s.Override.Model, Source: s.Override.Source, Origin: s.Override.Origin}
}

// heartbeatSelection is heartbeat.model, or the session's own selection after a stale automatic
// override was cleared (spec/failover.md §12).
func (s *stage) heartbeatSelection(ctx context.Context, ses session.Session) (*policy.Selection, error) {
	agent := s.config.Agent(ses.AgentID)
	if !agent.Heartbeat.Model.IsZero() {
		return &policy.Selection{Ref: agent.Heartbeat.Model, Source: policy.SourceHeartbeat}, nil
	}
	if ses.Override.Auto() && ses.Override.Origin != agent.Models.Primary {
		if _, err := s.sessions.ClearAuto(ctx, ses.Key, ses.Override); err != nil {
			return nil, err
		}
		ses.Override = session.Override{}
	}
	sel := policy.Select(override(ses), agent.Models)
	return &sel, nil
}

// login stores a new secret for a profile, as `bot auth login` does.
func (s *stage) login(ctx context.Context, id llm.ProfileID) error {
	store := s.auth[s.config.DefaultAgent()]
	p := profile{id: id, kind: llm.KindAPIKey}
	for i, x := range s.sc.profiles {
		if x.id != id {
			continue
		}
		if x.kind == llm.KindOAuth {
			s.sc.profiles[i].expires = s.clock.Now().Add(time.Hour)
		} else {
			s.sc.profiles[i].expires = time.Time{}
		}
		p = s.sc.profiles[i]
	}
	s.stored[id.Provider()] = true
	before, err := store.Snapshot(ctx)
	if err != nil {
		return err
	}
	if err := store.Put(ctx, s.credential(p, int(s.clock.Now().UnixMilli()))); err != nil {
		return err
	}
	after, err := store.Snapshot(ctx)
	if err != nil {
		return err
	}
	var changed []policy.Changed
	for k := range before.Health {
		if k.Profile == id {
			changed = append(changed, policy.Changed{Key: k, Row: after.Health[k]})
		}
	}
	s.trace.Settled("", changed)
	return nil
}

// restart drains the process and starts the next one on the same databases.
func (s *stage) restart(ctx context.Context) {
	s.process.draining = true
	limit, cancel := s.clock.Clock().WithTimeout(ctx, drainTime, llm.ErrShutdown)
	defer cancel()
	if err := s.process.lanes.Drain(limit); err != nil {
		s.log.Error("drain", "error", err.Error())
	}
	if err := s.start(); err != nil {
		s.log.Error("restart", "error", err.Error())
	}
}

// stop ends what still runs when the drill is over.
func (s *stage) stop() {
	s.process.draining = true
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(llm.ErrShutdown)
	s.clock.Clock().Go(func() { _ = s.process.lanes.Drain(ctx) })
	s.clock.Run(far)
}

// stand is a turn's place in the drill's channel: it does not stream, and what is said stands in
// the trace.
type stand struct {
	trace *trace
	ref   failover.Ref
}

func (*stand) Stream(string)   {}
func (*stand) Committed() bool { return false }
func (*stand) Restart()        {}

// Notify implements reply.Delivery.
func (d *stand) Notify(o chat.Outbound) { d.trace.notice(d.ref, o.Markdown) }

// Finish implements reply.Delivery; the trace learns the text from the turn's outcome.
func (*stand) Finish(context.Context, chat.Outbound) error { return nil }
func (*stand) Cancel()                                     {}

// alwaysCompletes is the drill's compaction.
type alwaysCompletes struct{}

// Summarize implements reply.Summarizer.
func (alwaysCompletes) Summarize(context.Context, reply.SummaryJob) (string, error) {
	return "(summary)", nil
}
