package failover

import (
	"context"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

// Numbers of the probes between turns (spec/failover.md §12, spec/chat.md §6.5).
const (
	probeTimeout = 20 * time.Second
	probeTokens  = 16 // the least that every API accepts
)

// ProbeResult says what came of a probe.
type ProbeResult string

// The results.
const (
	ProbeBack       ProbeResult = "back"        // the model answered; what was recorded against it is cleared
	ProbeDown       ProbeResult = "down"        // it did not
	ProbeNotCooling ProbeResult = "not_cooling" // nothing keeps it from serving, so nothing was asked
	ProbeNotNow     ProbeResult = "not_now"     // throttled, or in a window that must not be touched
)

// Probe asks a model whether it is back, outside any turn: one minimal request with no user's words
// in it, at most once per provider and 30 seconds. A probe that fails begins no window and changes no
// step (spec/failover.md §12). With onlyCooling a model that nothing blocks is left alone.
// It returns what the request used too.
func (r *Runner) Probe(ctx context.Context, agent string, ref llm.ModelRef, onlyCooling bool) (ProbeResult, llm.Usage, error) {
	store, err := r.deps.Store(agent)
	if err != nil {
		return ProbeNotNow, llm.Usage{}, err
	}
	plan := Plan{Ref: Ref{Agent: agent}, Selected: ref, Chain: []llm.ModelRef{ref}, Strict: true, Quiet: true}
	run := &Run{runner: r, host: unheard{}, plan: plan, settings: r.deps.Settings(), store: store, pass: 1, begun: r.deps.Clock.Now()}
	run.state.Started = run.begun
	run.state.Chain = run.candidates(plan)
	run.refresh(ctx, run.begun)
	profile, result := run.probeProfile(onlyCooling)
	if result != "" {
		return result, llm.Usage{}, nil
	}
	try := policy.Try{Profile: profile, Why: policy.WhyBackground, Throttled: true, Share: 1}
	if !run.claim(ctx, try) {
		return ProbeNotNow, llm.Usage{}, nil
	}
	ctx, cancel := r.deps.Clock.WithTimeout(ctx, probeTimeout, llm.ErrIdle)
	defer cancel()
	answer, failed, err := run.attempt(ctx, try, &llm.Request{
		Messages: []llm.Message{llm.Text(llm.RoleUser, "ping")}, MaxTokens: probeTokens,
	})
	if err == nil && failed != nil && failed.Reason == llm.ReasonAborted {
		err = context.Cause(ctx)
	}
	if err != nil || failed != nil {
		return ProbeDown, llm.Usage{}, err
	}
	return ProbeBack, answer.Usage, nil
}

// probeProfile picks the profile to probe with: a free one, else the one whose window ends first.
// result is set when there is nothing to ask.
func (run *Run) probeProfile(onlyCooling bool) (profile llm.ProfileID, result ProbeResult) {
	c := run.state.Chain[0]
	if c.Unfit != "" {
		return "", ProbeNotNow
	}
	rest := policy.Snapshot{Health: run.state.Health, LastProbe: run.state.LastProbe}.Rest(c.Profiles, c.Ref, run.begun)
	switch {
	case rest.Free && onlyCooling:
		return "", ProbeNotCooling
	case rest.Profile == "":
		return "", ProbeNotNow
	}
	return rest.Profile, ""
}

// unheard is the host of a probe.
type unheard struct{}

func (unheard) Text(string) bool { return false }
func (unheard) Forget()          {}
func (unheard) StillRetrying()   {}
func (unheard) Compact(context.Context, llm.ModelRef) ([]llm.Message, bool) {
	return nil, false
}
func (unheard) Switched(context.Context) (Plan, bool) { return Plan{}, false }
