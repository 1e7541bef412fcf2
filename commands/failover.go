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
		return r.probe(ctx, c, v)
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
		// Behind a blank line: it would be taken for a part of the list.
		lines = append(lines, "", "Next five-minute check: "+v.when(at))
	}
	return Reply{Text: strings.Join(append(lines, r.standIns(ctx, v)...), "\n")}, nil
}

// standIns names the scheduled tasks whose last run another model answered: nobody is told of that
// otherwise (spec/chat.md §5.6).
func (r *Registry) standIns(ctx context.Context, v view) (lines []string) {
	if r.deps.Cron == nil {
		return nil
	}
	jobs, err := r.deps.Cron.List(ctx, false)
	if err != nil {
		return []string{"⚠️ The scheduled tasks cannot be read."}
	}
	for _, j := range jobs {
		if j.StandIn.IsZero() {
			continue
		}
		if len(lines) == maxJobs {
			return append(lines, "⏰ … /cron list shows the others.")
		}
		lines = append(lines, fmt.Sprintf("⏰ %s: answered by %s, which stood in, %s", clip(j.Name, maxQuote), j.StandIn, v.when(j.LastRun)))
	}
	return lines
}

// probe asks a model whether it is back.
func (r *Registry) probe(ctx context.Context, c Call, v view) (Reply, error) {
	ref := v.lead()
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
	return Reply{Text: fmt.Sprintf("🩺 %s was not asked: %s.", ref, v.notAsked(ctx, ref))}, nil
}
