package policy

import (
	"maps"
	"time"

	"understudy/llm"
)

// Key addresses one health row: a profile for one model, or for all of them (Model == "").
type Key struct {
	Profile llm.ProfileID
	Model   string // bare model id
}

// Window is a span in which a profile is not to be used. It is active while now < Until.
type Window struct {
	Since, Until time.Time
	Reason       llm.Reason
	Detail       llm.Detail
	Stated       bool // the provider itself named the end
}

// Active reports whether the window blocks at now.
func (w Window) Active(now time.Time) bool { return now.Before(w.Until) }

// Row is the health of one Key (spec §7). The zero value is perfect health.
type Row struct {
	LastUsed      time.Time // of a success; on the profile's own row only
	LastFailureAt time.Time
	ErrorCount    int // step of the ladder
	BillingCount  int // step of the billing lane
	AuthCount     int // step of the auth_permanent lane
	FailureCounts map[llm.Reason]int
	Cooldown      Window
	Disabled      Window
}

// Equal reports whether both rows say the same.
func (r Row) Equal(o Row) bool {
	return r.LastUsed.Equal(o.LastUsed) && r.LastFailureAt.Equal(o.LastFailureAt) &&
		r.ErrorCount == o.ErrorCount && r.BillingCount == o.BillingCount && r.AuthCount == o.AuthCount &&
		maps.Equal(r.FailureCounts, o.FailureCounts) && r.Cooldown.equal(o.Cooldown) && r.Disabled.equal(o.Disabled)
}

func (w Window) equal(o Window) bool {
	return w.Since.Equal(o.Since) && w.Until.Equal(o.Until) && w.Reason == o.Reason && w.Detail == o.Detail && w.Stated == o.Stated
}

// Step returns the count that status and exports show as errorCount: of the lane while the row is
// disabled, of the ladder otherwise.
func (r Row) Step(now time.Time) int {
	if !r.Disabled.Active(now) {
		return r.ErrorCount
	}
	if r.Disabled.Reason == llm.ReasonBilling {
		return r.BillingCount
	}
	return r.AuthCount
}

// Health is a snapshot of rows.
type Health map[Key]Row

// Snapshot is what an agent's credential store knows at one moment. Nobody changes it.
type Snapshot struct {
	Profiles  []Profile                  // all providers
	Orders    map[string][]llm.ProfileID // stored order overrides by provider
	Health    Health
	LastProbe map[string]time.Time // provider → last throttled probe
}

// Changed is a health row whose visible content changed.
type Changed struct {
	Key Key
	Row Row
}

// Block returns the window that keeps profile from serving model: of all active ones the last to
// end (spec §8.5). ok is false when nothing does.
func (h Health) Block(profile llm.ProfileID, model string, now time.Time) (w Window, ok bool) {
	if len(h) == 0 {
		return w, false
	}
	all := h[Key{Profile: profile}]
	for _, x := range [...]Window{all.Cooldown, all.Disabled} {
		if x.Active(now) && x.Until.After(w.Until) {
			w, ok = x, true
		}
	}
	if model == "" {
		return w, ok
	}
	one := h[Key{profile, model}]
	for _, x := range [...]Window{one.Cooldown, one.Disabled} {
		if x.Active(now) && x.Until.After(w.Until) {
			w, ok = x, true
		}
	}
	return w, ok
}

// Disabled returns the active disable window that keeps profile from serving model.
func (h Health) Disabled(profile llm.ProfileID, model string, now time.Time) (Window, bool) {
	var w Window
	for _, x := range [...]Window{h[Key{Profile: profile}].Disabled, h[Key{profile, model}].Disabled} {
		if x.Active(now) && x.Until.After(w.Until) {
			w = x
		}
	}
	return w, w.Active(now)
}

// Stated returns the last end among the active windows of profile for model that the provider named;
// zero when it named none.
func (h Health) Stated(profile llm.ProfileID, model string, now time.Time) (end time.Time) {
	all, one := h[Key{Profile: profile}], h[Key{profile, model}]
	for _, x := range [...]Window{all.Cooldown, all.Disabled, one.Cooldown, one.Disabled} {
		if x.Stated && x.Active(now) && x.Until.After(end) {
			end = x.Until
		}
	}
	return end
}

// Attempt is what one request tells about the health of its profile.
type Attempt struct {
	Profile llm.ProfileID
	Model   string
	Failure *llm.Failure // nil = success
	// Background marks a probe of the five-minute job: when it fails it is counted, but begins no
	// window, moves none and changes no step (spec §12).
	Background bool
	At         time.Time
}

// Pair is the two rows an attempt can touch.
type Pair struct {
	All   Row // the profile for all models
	Model Row // the profile for the attempt's model
}

// Cost says which row a failure marks and how.
type Cost uint8

// The costs (spec §6.1, column "profile health").
const (
	CostNone   Cost = iota
	CostLadder      // a cooldown from the ladder
	CostLane        // a disable lane
)

// CostOf returns what f costs its profile and whether only for the model it was asked for.
func CostOf(f llm.Failure) (c Cost, modelOnly bool) {
	switch f.Reason {
	case llm.ReasonAuth, llm.ReasonOverloaded:
		return CostLadder, f.Scope == llm.ScopeModel
	case llm.ReasonAuthPermanent, llm.ReasonBilling:
		return CostLane, f.Scope == llm.ScopeModel
	case llm.ReasonRateLimit:
		return CostLadder, f.Scope != llm.ScopeProfile
	case llm.ReasonTimeout:
		if f.NotSent {
			return CostNone, false
		}
		return CostLadder, true
	}
	return CostNone, false
}

// Settle returns the rows as they are after a. A failure never makes anything available, and an
// active window ends later only when the provider says so (spec §7).
func (r Rules) Settle(p Pair, a Attempt) Pair {
	if a.Failure == nil {
		return Pair{All: Row{LastUsed: a.At}}
	}
	cost, modelOnly := CostOf(*a.Failure)
	if cost == CostNone {
		return p
	}
	if modelOnly {
		p.Model = r.fail(p.Model, a, cost)
	} else {
		p.All = r.fail(p.All, a, cost)
	}
	return p
}

// fail applies one failure to one row.
func (r Rules) fail(row Row, a Attempt, cost Cost) Row {
	f, now := *a.Failure, a.At
	w := &row.Cooldown
	if cost == CostLane {
		w = &row.Disabled
	}
	fresh := !w.Active(now) && !a.Background
	if fresh && !row.LastFailureAt.IsZero() && now.Sub(row.LastFailureAt) >= r.FailureWindow {
		row.ErrorCount, row.BillingCount, row.AuthCount, row.FailureCounts = 0, 0, 0, nil
	}
	counts := make(map[llm.Reason]int, len(row.FailureCounts)+1)
	maps.Copy(counts, row.FailureCounts)
	counts[f.Reason]++
	row.FailureCounts = counts
	row.LastFailureAt = now

	stated, exact := statedEnd(f, now)
	switch {
	case fresh:
		end := now.Add(r.step(&row, f.Reason, a.Profile.Provider(), cost))
		named := false
		if !stated.IsZero() && (!stated.Before(end) || (exact && cost == CostLadder)) {
			end, named = stated, true
		}
		*w = Window{Since: now, Until: end, Reason: f.Reason, Detail: f.Detail, Stated: named}
	case w.Active(now) && stated.After(w.Until) && !a.Background:
		w.Until, w.Stated = stated, true
	}
	return row
}

// step raises the counter of the ladder or lane and returns the length of the window it stands for.
func (r Rules) step(row *Row, reason llm.Reason, provider string, cost Cost) time.Duration {
	if cost == CostLadder {
		row.ErrorCount++
		return ladder[min(row.ErrorCount, len(ladder))-1]
	}
	n := &row.AuthCount
	if reason == llm.ReasonBilling {
		n = &row.BillingCount
	}
	*n++
	return r.lane(reason, provider, *n)
}

// statedEnd returns the end that the provider named, and whether it is an exact reset.
func statedEnd(f llm.Failure, now time.Time) (end time.Time, exact bool) {
	if f.ResetAt.After(now) {
		return f.ResetAt, true
	}
	if f.RetryAfter > 0 {
		return now.Add(f.RetryAfter), false
	}
	return time.Time{}, false
}
