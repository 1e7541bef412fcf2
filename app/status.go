package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/failover/policy"
	"understudy/gateway"
	"understudy/llm"
	"understudy/notices"
	"understudy/session"
)

// Whether anything could serve a model now, beside "resting" (gateway.ModelStatus).
const (
	credentialOK   = "ok"
	credentialNone = "none"
)

// downTooLong is how long a channel may be away before the bot counts as degraded.
const downTooLong = 2 * time.Minute

// Ready implements gateway.StatusSource (spec/chat.md §7.3).
func (a *App) Ready(ctx context.Context) (gateway.Readiness, []gateway.Problem) {
	switch a.phase.Load() {
	case phaseStarting:
		return gateway.Starting, nil
	case phaseDraining:
		return gateway.Draining, nil
	}
	var problems []gateway.Problem
	now := a.opts.Clock.Now()
	for _, s := range a.states.all() {
		if s.State != channels.Connected && (s.State == channels.Stopped || now.Sub(s.Since) > downTooLong) {
			problems = append(problems, gateway.Problem{Subject: s.Channel + "/" + s.Account, Detail: strings.TrimSpace(string(s.State) + " " + s.Detail)})
		}
	}
	for _, u := range a.cfg().Unavailable {
		problems = append(problems, gateway.Problem{Subject: u.Channel + u.Provider + u.Part, Detail: u.Problem.String()})
	}
	for agent, err := range a.auth.problems() {
		problems = append(problems, gateway.Problem{Subject: "store/" + agent, Detail: err.Error()})
	}
	if p := a.unwritable(ctx); p != "" {
		problems = append(problems, gateway.Problem{Subject: "store", Detail: p})
	}
	if len(problems) > 0 {
		return gateway.Degraded, problems
	}
	return gateway.Ready, nil
}

// Status implements gateway.StatusSource.
func (a *App) Status(ctx context.Context, where chat.Address) (gateway.Status, error) {
	ready, problems := a.Ready(ctx)
	if p := a.reloadProblem(); p != "" {
		problems = append(problems, gateway.Problem{Subject: "config", Detail: "the newest configuration is not in use: " + p})
	}
	problems = append(problems, a.toolProblems()...)
	st := gateway.Status{Version: a.opts.Version, StartedAt: a.started, Readiness: ready, Problems: problems, Channels: []gateway.ChannelStatus{}}
	for _, s := range a.states.shown() {
		st.Channels = append(st.Channels, gateway.ChannelStatus{Channel: s.Channel, Account: s.Account, State: string(s.State), Detail: s.Detail, Since: s.Since})
	}
	agent := a.belongs(chat.Inbound{Address: where}).agent
	s := a.conversation(ctx, where)
	st.Model = modelStatus(s, a.cfg().Agent(agent).Models)
	if snap, err := a.health(ctx, agent); err == nil {
		now := a.opts.Clock.Now()
		st.Profiles = unhealthyProfiles(snap, now)
		st.Model.Credential, st.Model.Until = a.servable(s, snap, st.Model.Selected, now)
		if where == (chat.Address{}) && st.Model.Credential != credentialOK {
			st.Model.Active, st.Model.Reason = a.standIn(snap, st.Model, now)
		}
	}
	return st, nil
}

// conversation is the session of an address with the selection that counts for it; zero = there is none.
func (a *App) conversation(ctx context.Context, where chat.Address) session.Session {
	if where == (chat.Address{}) {
		return session.Session{}
	}
	s, err := a.sessions.Get(ctx, a.belongs(chat.Inbound{Address: where}).key)
	if err != nil {
		return session.Session{}
	}
	if o, _, err := a.sessions.Selection(ctx, s); err == nil {
		s.Override = o
	}
	return s
}

// servable tells whether anything could serve a model in a conversation now.
func (a *App) servable(s session.Session, health policy.Snapshot, model string, now time.Time) (state string, until time.Time) {
	ref, err := llm.ParseRef(model)
	if err != nil {
		return "", until
	}
	x := ModelInfo{Profiles: a.current.Load().profiles(health, ref, now)}
	if s.Pin.Profile.Provider() == ref.Provider {
		pin := policy.Pin{Profile: s.Pin.Profile, User: s.Pin.Source == session.SourceUser}
		x.Profiles, _ = pin.Apply(x.Profiles, health.Health, ref.Model, now)
	}
	x.credential(health, ref, now)
	return x.Credential, x.Until
}

// standIn returns the first fallback that could serve now, and why the selected model does not; "" = none
// could.
func (a *App) standIn(health policy.Snapshot, m gateway.ModelStatus, now time.Time) (active, reason string) {
	for _, f := range m.Fallbacks {
		if f == m.Selected {
			continue
		}
		if state, _ := a.servable(session.Session{}, health, f, now); state != credentialOK {
			continue
		}
		if m.Credential == credentialNone {
			return f, "no credential for " + m.Selected
		}
		ref, err := llm.ParseRef(m.Selected)
		if err != nil {
			return f, ""
		}
		r := health.Rest(a.current.Load().profiles(health, ref, now), ref, now)
		return f, notices.Because(r.Reason, r.Detail)
	}
	return "", ""
}

// modelStatus is the selection of a conversation.
func modelStatus(s session.Session, models policy.Models) gateway.ModelStatus {
	sel := policy.Select(policy.Override{Ref: s.Override.Model, Source: s.Override.Source, Origin: s.Override.Origin}, models)
	out := gateway.ModelStatus{Selected: sel.Ref.String(), Source: string(sel.Source)}
	told := sel.Ref
	if sel.Source == policy.SourceAuto {
		told = s.Override.Origin // what the override stands in for is what was selected (spec/failover.md §10)
	}
	if s.Notice.Selected == told && s.Notice.Active != told {
		out.Active, out.Reason = s.Notice.Active.String(), s.Notice.Reason
	}
	if !policy.Strict(sel, models) {
		out.Fallbacks = refStrings(policy.Chain(sel, models)[1:])
	}
	return out
}

func unhealthyProfiles(snap policy.Snapshot, now time.Time) []gateway.ProfileStatus {
	var list []gateway.ProfileStatus
	for k, row := range snap.Health {
		for state, w := range map[string]policy.Window{"cooldown": row.Cooldown, "disabled": row.Disabled} {
			if w.Active(now) {
				list = append(list, gateway.ProfileStatus{Profile: string(k.Profile), Model: k.Model, State: state, Reason: string(w.Reason), Until: w.Until})
			}
		}
	}
	slices.SortFunc(list, func(x, y gateway.ProfileStatus) int {
		return strings.Compare(fmt.Sprint(x.Profile, x.Model, x.State), fmt.Sprint(y.Profile, y.Model, y.State))
	})
	return list
}
