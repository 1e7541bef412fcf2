package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"understudy/failover/policy"
	"understudy/llm"
)

// failover shows the chain with the state of every candidate.
func (r *Registry) failover(ctx context.Context, c Call, args string) (Reply, error) {
	probe := strings.EqualFold(args, "probe")
	if args != "" && !probe && !strings.EqualFold(args, "status") {
		return Reply{}, unknown("action", args, []string{"status", "probe"})
	}
	v, err := r.look(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	if v.blind {
		return Reply{Text: "⚠️ The stored credentials cannot be read; /status says more."}, nil
	}
	if v.sel.Ref.IsZero() {
		return Reply{Text: "No model is configured yet."}, nil
	}
	if probe {
		return r.probe(ctx, c, v.lead())
	}
	title := "🎭 Chain of this conversation"
	if policy.Strict(v.sel, v.models) {
		title += " (strict)"
	}
	lines := []string{title}
	for i, ref := range policy.Chain(v.sel, v.models) {
		line := fmt.Sprintf("%d. %s", i+1, ref)
		profiles := v.profiles(ctx, ref)
		if len(profiles) == 0 {
			line += " — no credential"
		}
		lines = append(lines, line)
		for _, p := range profiles {
			state := "ready"
			if w, blocked := v.health.Health.Block(p, ref.Model, v.now); blocked {
				state = fmt.Sprintf("%s until %s", words(w.Reason, w.Detail), v.when(w.Until))
			}
			lines = append(lines, fmt.Sprintf("   %s: %s", code(string(p)), state))
		}
		if last := v.health.LastProbe[ref.Provider]; last.Add(policy.ProbeThrottle).After(v.now) {
			lines = append(lines, "   next probe not before "+v.when(last.Add(policy.ProbeThrottle)))
		}
	}
	if at := r.deps.NextProbe(); at.After(v.now) {
		lines = append(lines, "Next five-minute check: "+v.when(at))
	}
	return Reply{Text: strings.Join(lines, "\n")}, nil
}

// probe asks a model whether it is back.
func (r *Registry) probe(ctx context.Context, c Call, ref llm.ModelRef) (Reply, error) {
	if r.deps.Probe == nil {
		return Reply{}, &Refusal{"Nothing can be probed here."}
	}
	answered, asked, err := r.deps.Probe(ctx, c.Agent, ref)
	var failed *llm.Error
	switch {
	case err != nil && !errors.As(err, &failed):
		return Reply{}, err
	case answered:
		return Reply{Text: fmt.Sprintf("🩺 %s answers; it is asked first again.", ref)}, nil
	case failed != nil:
		return Reply{Text: fmt.Sprintf("🩺 %s does not answer yet: %s.", ref, words(failed.Reason, failed.Detail))}, nil
	case asked:
		return Reply{Text: fmt.Sprintf("🩺 %s does not answer yet.", ref)}, nil
	}
	return Reply{Text: fmt.Sprintf("🩺 %s was not asked: nothing keeps it from serving, or it was asked a moment ago.", ref)}, nil
}
