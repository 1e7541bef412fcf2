package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/authstore"
	"understudy/channels"
	"understudy/chat"
	"understudy/commands"
	"understudy/config"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/provider/sim"
	"understudy/reply"
	"understudy/session"
)

// commandDeps says what the commands work with.
func (a *App) commandDeps() commands.Deps {
	d := commands.Deps{
		Sessions: a.sessions, Lanes: a.lanes, Switched: a.failover.Switched, Models: selectable{a}, Health: a.health, Underway: a.underway,
		Compact: func(ctx context.Context, c commands.Call, focus string) (before, after int, err error) {
			return a.reply.Compact(ctx, reply.Request{Agent: c.Agent, Key: c.Key, Parent: c.Parent, To: c.To}, focus)
		},
		Endpoint: func(id string) (host, api string) {
			r := a.current.Load().registry
			return r.Host(id), string(r.API(id))
		},
		Problems:   a.problems,
		Authorised: func(c commands.Call) bool { return a.mayCommand(c.In) },
		Queue:      func() session.QueueConfig { return a.cfg().Queue },
		Steerable: func(agent string, ref llm.ModelRef) bool {
			return a.current.Load().registry.Model(ref).Tools && len(a.toolsFor(agent, chat.Address{Kind: chat.Direct})) > 0
		},
		Context: a.context, Aside: a.aside, Steer: a.steer, Restart: a.restart, Pair: a.pair, Activations: switchboard{a},
		Speech: a.speech.control,
		Probe: func(ctx context.Context, agent string, ref llm.ModelRef) (answered, asked bool, err error) {
			return a.prober.Ask(ctx, agent, ref)
		},
		NextProbe: func() time.Time { return a.prober.Due() },
		Cron:      cronDesk{a}, Reminders: reminders{cronDesk{a}}, Loops: loopDesk{cronDesk{a}}, Heartbeat: beatDesk{a},
		Channels: func() []commands.Channel {
			var list []commands.Channel
			for _, s := range a.states.shown() {
				name := s.Channel
				if s.Account != "" {
					name += "/" + s.Account
				}
				x := commands.Channel{Name: name, State: string(s.State)}
				if s.State != channels.Connected {
					x.Since = s.Since
				}
				list = append(list, x)
			}
			return list
		},
		Clock: a.opts.Clock, Log: a.log, Version: a.opts.Version, Started: a.started,
		Zone: func(agent string) *time.Location { return a.cfg().Agent(agent).Timezone },
	}
	if a.current.Load().hasSim() {
		d.Sim = a.playTrouble
	}
	return d
}

// playTrouble is the command /sim. The offline models share one key, like any two models of a provider, so what is wrong
// with the key stops both; and the end of a played trouble is also the end of the rest that it earned.
func (a *App) playTrouble(ctx context.Context, agent, args string) (string, error) {
	text, err := a.sim.Run(args)
	if err != nil {
		return "", err
	}
	c, err := sim.ParseCommand(args)
	if err != nil {
		return "", err
	}
	switch {
	case c.Verb == sim.VerbOK:
		store, err := a.auth.get(ctx, agent)
		if err != nil {
			return "", err
		}
		if _, err := clearHealth(ctx, store, sim.Provider); err != nil {
			return "", err
		}
	case c.Verb == sim.VerbFail && slices.Contains(keyTroubles, c.Kind):
		text += "\nThis is about the key, and both models use the same one: expect them to rest together, until `/sim ok`."
	}
	return text, nil
}

// keyTroubles stop a key for every model.
var keyTroubles = []llm.Reason{llm.ReasonAuth, llm.ReasonAuthPermanent, llm.ReasonBilling}

// health is what is known about an agent's credentials.
func (a *App) health(ctx context.Context, agent string) (policy.Snapshot, error) {
	store, err := a.auth.get(ctx, agent)
	if err != nil {
		return policy.Snapshot{}, err
	}
	return store.Snapshot(ctx)
}

// problems lists what the operator should know, for /status and the page.
func (a *App) problems(ctx context.Context) []string {
	var list []string
	if p := a.reloadProblem(); p != "" {
		list = append(list, "The newest configuration is not in use: "+p)
	}
	if p := a.unwritable(ctx); p != "" {
		list = append(list, strings.ToUpper(p[:1])+p[1:])
	}
	for agent, err := range a.auth.problems() {
		list = append(list, storeProblem(agent, err))
	}
	for _, u := range a.cfg().Unavailable {
		list = append(list, u.Problem.String())
	}
	for _, p := range a.toolProblems() {
		list = append(list, p.Detail)
	}
	list = append(list, a.importProblems(ctx)...)
	slices.Sort(list)
	return list
}

// storeProblem tells what is wrong with the credentials of an agent, and what that means.
func storeProblem(agent string, err error) string {
	if errors.Is(err, authstore.ErrLate) {
		return fmt.Sprintf("The credentials of agent %s work, but what happens to them cannot be stored at this moment; I remember it and try again. (%s)", agent, err)
	}
	return fmt.Sprintf("The credentials of agent %s cannot be read; I use the keys of the environment. %s", agent, foreignHint(err))
}

// selectable answers what can be selected, from the configuration of the moment.
type selectable struct{ a *App }

// Agent implements commands.Models.
func (s selectable) Agent(id string) policy.Models { return s.a.cfg().Agent(id).Models }

// Resolve implements commands.Models.
func (s selectable) Resolve(ctx context.Context, agent, text string) (commands.Choice, error) {
	snap := s.a.current.Load()
	choice, err := snap.cfg.Resolve(text, config.Known{
		Profile: func(id llm.ProfileID) bool { return s.ProfileExists(ctx, agent, id) },
		Bare: func(id string) []llm.ModelRef {
			return slices.DeleteFunc(s.Known(ctx, agent), func(r llm.ModelRef) bool { return r.Model != id })
		},
		Agent: agent,
	})
	switch {
	case errors.Is(err, config.ErrWrongProvider):
		return commands.Choice{}, errors.New("The profile belongs to another provider.") //nolint:staticcheck // a sentence for chat
	case err != nil:
		return commands.Choice{}, fmt.Errorf("I don't know %q. Try /models.", text) //nolint:staticcheck // a sentence for chat
	}
	if _, err := snap.Client(choice.Ref.Provider); err != nil {
		return commands.Choice{}, fmt.Errorf("I don't know %q. Try /models.", text) //nolint:staticcheck // a sentence for chat
	}
	return commands.Choice{Ref: choice.Ref, Profile: choice.Profile, Guessed: choice.Guessed}, nil
}

// ProfileExists implements commands.Models.
func (s selectable) ProfileExists(ctx context.Context, agent string, id llm.ProfileID) bool {
	now := s.a.current.Load()
	if p, _, ok := now.Virtual(id.Provider()); ok && p.ID == id {
		return true
	}
	if slices.ContainsFunc(now.settings.Keys[id.Provider()], func(c llm.Credential) bool { return c.Profile == id }) {
		return true
	}
	snap, err := s.a.health(ctx, agent)
	return err == nil && slices.ContainsFunc(snap.Profiles, func(p policy.Profile) bool { return p.ID == id })
}

// Kind implements commands.Models.
func (s selectable) Kind(id llm.ProfileID) llm.CredentialKind {
	now := s.a.current.Load()
	if p, _, ok := now.Virtual(id.Provider()); ok && p.ID == id {
		return p.Kind
	}
	for _, c := range now.settings.Keys[id.Provider()] {
		if c.Profile == id {
			return c.Kind
		}
	}
	return ""
}

// Allowed implements commands.Models.
func (s selectable) Allowed(ref llm.ModelRef) bool { return s.a.cfg().Allowed(ref) }

// Known implements commands.Models.
func (s selectable) Known(ctx context.Context, agent string) []llm.ModelRef {
	snap := s.a.current.Load()
	return snap.selectable(s.credentials(ctx, snap.cfg.Agent(agent).ID), s.a.opts.Clock.Now())
}

// Provider implements commands.Models.
func (s selectable) Provider(id string) bool {
	snap := s.a.current.Load()
	var stores []policy.Snapshot
	for _, agent := range snap.cfg.AgentIDs() {
		stores = append(stores, s.credentials(context.Background(), agent))
	}
	return snap.reachable(id, stores...)
}

// credentials are the stored ones of an agent. A store that cannot be read has none: that it cannot is
// told elsewhere.
func (s selectable) credentials(ctx context.Context, agent string) policy.Snapshot {
	health, err := s.a.health(ctx, agent)
	if err != nil {
		return policy.Snapshot{}
	}
	return health
}

// Alias implements commands.Models.
func (s selectable) Alias(ref llm.ModelRef) string { return s.a.cfg().Alias(ref) }

// Info implements commands.Models.
func (s selectable) Info(ref llm.ModelRef) commands.Info {
	return commands.Info{ContextWindow: s.a.current.Load().Info(ref).ContextWindow}
}

// Profiles implements commands.Models.
func (s selectable) Profiles(ctx context.Context, agent string, ref llm.ModelRef) []llm.ProfileID {
	return s.a.current.Load().profiles(s.credentials(ctx, agent), ref, s.a.opts.Clock.Now())
}
