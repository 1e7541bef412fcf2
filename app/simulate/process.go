package simulate

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"understudy/chat"
	"understudy/commands"
	"understudy/config"
	"understudy/delivery/markup"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/heartbeat"
	"understudy/llm"
	"understudy/notices"
	"understudy/reply"
	"understudy/session"
)

// process is what a restart ends: everything that is kept in memory only.
type process struct {
	job      *heartbeat.Prober
	nextJob  time.Time // when the five-minute job runs next
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
	p := &process{lanes: session.NewLanes(session.LaneConfig{MaxInteractive: s.config.Agents.Defaults.MaxConcurrent}, s.clock.Clock(), s.log)}
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
		Failover: p.failover, Sessions: &memory{Store: s.sessions, kept: map[string]int{}},
		Begin: func(to chat.Address, _ *chat.Inbound, turn string) reply.Delivery {
			return &stand{s.trace, failover.Ref{Session: to.Conversation, Turn: turn}}
		},
		Agent:   s.agent,
		Models:  func() failover.Models { return s.models },
		Notices: func() notices.Config { return s.config.Notices },
		Tools:   s.tools(), Compact: alwaysCompletes{},
		Clock: s.clock.Clock(), Log: s.log, IsSilent: markup.IsSilent, Clean: markup.StripScaffolding,
	})
	p.job = heartbeat.New(heartbeat.Deps{
		Sessions: s.sessions, Clock: s.clock.Clock(), Log: s.log,
		Probe: func(ctx context.Context, agent string, ref llm.ModelRef, onlyCooling bool) (answered, asked bool, err error) {
			result, _, err := p.failover.Probe(ctx, agent, ref, onlyCooling)
			return result == failover.ProbeBack, result == failover.ProbeBack || result == failover.ProbeDown, err
		},
	})
	p.nextJob = s.clock.Now().Add(heartbeat.Every)
	s.process = p
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

// apply makes an event happen. What people write while the process drains waits for the next one.
func (s *stage) apply(ctx context.Context, e event) error {
	switch e.kind {
	case eventUser, eventCron, eventHeartbeat:
		if s.process.draining {
			s.arrived = append(s.arrived, e)
			return nil
		}
		if e.kind == eventUser {
			return s.says(ctx, e)
		}
		s.accept(e, e.text)
	case eventStop:
		s.trace.happens(e.session, 0, "the user stops the turn")
		s.process.lanes.Stop(e.session, "")
	case eventRestart:
		if !s.process.draining {
			s.process.draining = true
			s.trace.happens("", 0, "the process restarts")
			s.clock.Clock().Go(func() { s.restart(ctx) })
		}
	case eventConfig:
		s.trace.happens("", 0, "the configuration is reloaded")
		return s.reload(ctx, e.config)
	case eventLogin:
		s.trace.happens("", 0, "new credential for "+string(e.profile))
		return s.login(ctx, e.profile)
	case eventRemove:
		s.trace.happens("", 0, string(e.profile)+" is removed")
		return s.remove(ctx, e.profile)
	case eventCompact:
		s.trace.happens(e.session, 0, "the conversation is compacted")
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
		s.accept(e, e.text)
		return nil
	}
	s.trace.happens(e.session, 0, said(e, e.text))
	call := commands.Call{Agent: ses.AgentID, Key: ses.Key, To: ses.Address, Owner: true, In: chat.Inbound{
		ID: "command", Address: ses.Address, Text: e.text, Sender: chat.Sender{ID: e.session, Local: true},
	}}
	run := func(ctx context.Context) {
		r := s.process.commands.Run(ctx, inv, call)
		if r.Text != "" {
			s.trace.add(line{kind: "command", session: e.session, text: r.Text})
		}
		if r.Follow != "" {
			s.accept(e, r.Follow)
		}
	}
	if inv.Spec.Lane {
		t := session.Task{Front: true, Owner: e.session, Run: run}
		if inv.Spec.Stops {
			t.Preempt = llm.ErrStopped
		}
		return s.process.lanes.Submit(e.session, t)
	}
	s.clock.Clock().Go(func() { run(ctx) })
	return nil
}

func (s *stage) ensure(ctx context.Context, name string) (session.Session, error) {
	ses, _, err := s.sessions.Ensure(ctx, session.Seed{Key: name, AgentID: s.config.DefaultAgent(), Address: address(name)})
	return ses, err
}

// accept makes a turn of an event.
func (s *stage) accept(e event, text string) {
	s.turns++
	w := work{id: strconv.Itoa(s.turns), seq: s.turns, event: e, text: text}
	s.trace.begin(w.id)
	s.trace.happens(e.session, s.turns, said(e, text))
	s.submit(w)
}

// submit queues a turn in its session's lane.
func (s *stage) submit(w work) {
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
	switch {
	case errors.Is(err, session.ErrDraining):
		s.interrupted = append(s.interrupted, w)
	case err != nil:
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
			q.In.Attachments = []chat.Attachment{{Name: "picture.png", MediaType: "image/png", Data: dot()}}
		}
	}
	return q, err
}

// reload takes a new configuration into use. Agents that are new get a store.
func (s *stage) reload(ctx context.Context, c *config.Config) error {
	m, err := newModels(s.world, c, s.stored)
	if err != nil {
		return err
	}
	s.config, s.models = c, m
	return s.openStores(ctx)
}

// restart drains the process and starts the next one on the same databases.
func (s *stage) restart(ctx context.Context) {
	limit, cancel := s.clock.Clock().WithTimeout(ctx, drainTime, llm.ErrShutdown)
	defer cancel()
	if err := s.process.lanes.Drain(limit); err != nil {
		s.log.Error("drain", "error", err.Error())
	}
	if err := s.start(); err != nil {
		s.log.Error("restart", "error", err.Error())
		return
	}
	again, arrived := s.interrupted, s.arrived
	s.interrupted, s.arrived = nil, nil
	slices.SortFunc(again, func(a, b work) int { return a.seq - b.seq })
	for _, w := range again {
		s.submit(w)
	}
	for _, e := range arrived {
		if err := s.apply(ctx, e); err != nil {
			s.log.Error("restart", "error", err.Error())
		}
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
