package commands

import (
	"context"
	"fmt"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

// rest says how a model rests for all conversations: what one of them has pinned does not count, since
// the five-minute job does not look at it.
func (v view) rest(ctx context.Context, ref llm.ModelRef) (r policy.Rest, found bool) {
	list := v.r.deps.Models.Profiles(ctx, v.call.Agent, ref)
	return v.health.Rest(list, ref, v.now), len(list) > 0
}

// askedAgain says when a model that others stand in for is asked again; "" = that is not known.
func (v view) askedAgain(ctx context.Context, ref llm.ModelRef) string {
	if v.blind {
		return ""
	}
	switch r, found := v.rest(ctx, ref); {
	case !found:
		return "no credential"
	case r.Free && v.sel.Source != policy.SourceAuto: // a stored override yields to a probe only
		return "asked first again with the next message"
	case !r.Free && r.From.IsZero():
		return "asked again at " + v.orAfter(r.Until, ref)
	default:
		at := v.r.deps.NextProbe()
		if at.Before(r.From) {
			at = r.From // an unpaid account: the job passes it over until then
		}
		if !at.After(v.now) {
			return ""
		}
		return "next primary probe in " + countdown(at.Sub(v.now))
	}
}

// orAfter is a moment, and the command that need not wait for it.
func (v view) orAfter(at time.Time, ref llm.ModelRef) string {
	return fmt.Sprintf("%s, or after %s", v.when(at), code("bot auth enable "+ref.Provider))
}

// notAsked says why a probe was not made.
func (v view) notAsked(ctx context.Context, ref llm.ModelRef) string {
	r, found := v.rest(ctx, ref)
	last := v.health.LastProbe[ref.Provider].Add(policy.ProbeThrottle)
	switch {
	case !found:
		return "there is no credential for " + ref.Provider
	case r.Free:
		return "nothing keeps it from serving"
	case r.From.IsZero():
		return fmt.Sprintf("%s. It is asked again at %s", words(r.Reason, r.Detail), v.orAfter(r.Until, ref))
	case r.From.After(v.now):
		return fmt.Sprintf("%s, and it was asked less than %s ago. It may be asked again at %s",
			words(r.Reason, r.Detail), span(policy.ProbeBillingEvery), v.orAfter(r.From, ref))
	case last.After(v.now):
		return fmt.Sprintf("%s was asked a moment ago. Another probe may be made at %s", ref.Provider, v.when(last))
	}
	return "it was asked a moment ago"
}
