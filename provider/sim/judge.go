package sim

import (
	"context"

	"understudy/llm"
	"understudy/provider"
)

// judge gives a response to the classifier, as a real provider's would be.
func (s *Sim) judge(ctx context.Context, r response) *llm.Error {
	return s.fail(ctx, provider.Exchange{Status: r.status, Header: r.header, Body: r.body, Written: true})
}

// ended turns the end of ctx into a failure (spec/failover.md §6, principle 1). As far as anybody
// can tell, the request had been sent.
func (s *Sim) ended(ctx context.Context) *llm.Error {
	return s.fail(ctx, provider.Exchange{Written: true})
}

// fail speaks as a host of the Anthropic API would, whose errors are the most explicit of all.
func (s *Sim) fail(ctx context.Context, ex provider.Exchange) *llm.Error {
	spec := provider.Spec{ID: Provider, API: provider.AnthropicMessages, Now: s.clock.Now}
	return spec.Fail(ctx, provider.Evidence{Exchange: ex})
}
