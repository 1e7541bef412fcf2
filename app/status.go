package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/failover/policy"
	"understudy/gateway"
	"understudy/internal/sqlite"
	"understudy/session"
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
	if err := a.writable(ctx); err != nil {
		problems = append(problems, gateway.Problem{Subject: "store", Detail: "the database cannot be written"})
	}
	if len(problems) > 0 {
		return gateway.Degraded, problems
	}
	return gateway.Ready, nil
}

// writable tries to begin writing; a database that another process holds for a moment counts as
// writable.
func (a *App) writable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := a.db.Write(ctx, func(*sqlite.Tx) error { return nil })
	if sqlite.Busy(err) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// Status implements gateway.StatusSource.
func (a *App) Status(ctx context.Context, where chat.Address) (gateway.Status, error) {
	ready, problems := a.Ready(ctx)
	if p := a.reloadProblem(); p != "" {
		problems = append(problems, gateway.Problem{Subject: "config", Detail: "the newest configuration is not in use: " + p})
	}
	st := gateway.Status{Version: a.opts.Version, StartedAt: a.started, Readiness: ready, Problems: problems, Channels: []gateway.ChannelStatus{}}
	for _, s := range a.states.shown() {
		st.Channels = append(st.Channels, gateway.ChannelStatus{Channel: s.Channel, Account: s.Account, State: string(s.State), Detail: s.Detail, Since: s.Since})
	}
	cfg := a.cfg()
	agent := cfg.Route(chat.Inbound{Address: where})
	var err error
	if st.Model, err = a.modelStatus(ctx, agent, where); err != nil {
		return st, err
	}
	if snap, err := a.health(ctx, agent); err == nil {
		st.Profiles = unhealthyProfiles(snap, a.opts.Clock.Now())
	}
	return st, nil
}

// modelStatus is the selection of a conversation.
func (a *App) modelStatus(ctx context.Context, agent string, where chat.Address) (gateway.ModelStatus, error) {
	cfg := a.cfg()
	models := cfg.Agent(agent).Models
	var s session.Session
	if where != (chat.Address{}) {
		found, err := a.sessions.Get(ctx, belongs(cfg, chat.Inbound{Address: where}).key)
		if err == nil {
			s = found
			if o, _, err := a.sessions.Selection(ctx, s); err == nil {
				s.Override = o
			}
		}
	}
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
	return out, nil
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
