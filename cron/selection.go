package cron

import (
	"fmt"

	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

// Selection is what a run asks for (spec/failover.md §3, spec/chat.md §5.1): the payload's model, else
// what a person chose for the session that the task runs in, else the agent's. A payload's model is no
// choice for the session. With a list of its own the run uses exactly that; without one the configured
// chain. resolve reads a model as people write it; its error is returned as it is.
func (p Payload) Selection(o session.Override, models policy.Models, resolve func(text string) (llm.ModelRef, error)) (policy.Selection, error) {
	sel := policy.Select(policy.Override{Ref: o.Model, Source: o.Source, Origin: o.Origin}, models)
	if p.Model != "" {
		ref, err := resolve(p.Model)
		if err != nil {
			return sel, fmt.Errorf("model %q: %w", clip(p.Model, maxName), err)
		}
		sel = policy.Selection{Ref: ref, Source: policy.SourceCron}
	}
	if p.Fallbacks == nil {
		return sel, nil
	}
	sel.Source, sel.Fallbacks = policy.SourceCron, []llm.ModelRef{}
	for _, text := range *p.Fallbacks {
		ref, err := resolve(text)
		if err != nil {
			return sel, fmt.Errorf("fallback %q: %w", clip(text, maxName), err)
		}
		sel.Fallbacks = append(sel.Fallbacks, ref)
	}
	return sel, nil
}
