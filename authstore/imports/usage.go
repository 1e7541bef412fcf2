package imports

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
)

// longestCooldown is the last step of the ladder (spec/failover.md §7).
const longestCooldown = 5 * time.Minute

// longestStated is the furthest end that a provider may name (spec/failover.md §6).
const longestStated = 7 * 24 * time.Hour

// Usage is the health of one profile as the other program recorded it.
type Usage struct {
	Profile llm.ProfileID
	Rows    map[string]policy.Row // by model; "" = all models
	Probe   time.Time             // zero = none
}

func (u Usage) empty() bool { return len(u.Rows) == 0 && u.Probe.IsZero() }

// readUsage translates the statistics of a profile. Windows in the past are dropped, those further
// away than their lane allows are cut to it (spec/imports.md).
func readUsage(id llm.ProfileID, o object, now time.Time, rules policy.Rules) Usage {
	u := Usage{Profile: id, Rows: map[string]policy.Row{}}
	failures := counts(o.get("failureCounts"))
	last := past(o.moment("lastFailureAt"), now)
	steps := count(o, "errorCount")

	model := modelID(o.text("cooldownModel"), id.Provider())
	row := policy.Row{LastFailureAt: last, ErrorCount: steps, FailureCounts: failures}
	row.Cooldown = window(o, "cooldown", now, longestCooldown, commonest(failures, llm.ReasonRateLimit))
	blockedModel := modelID(o.text("blockedModel"), id.Provider())
	if blocked := window(o, "blocked", now, longestStated, llm.ReasonRateLimit); !blocked.Until.IsZero() {
		blocked.Stated = true
		if blockedModel == model {
			if blocked.Until.After(row.Cooldown.Until) {
				row.Cooldown = blocked
			}
		} else {
			u.Rows[blockedModel] = policy.Row{LastFailureAt: last, ErrorCount: 1, FailureCounts: map[llm.Reason]int{blocked.Reason: 1}, Cooldown: blocked}
		}
	}
	u.Rows[model] = row

	all := u.Rows[""]
	all.LastUsed = past(o.moment("lastUsed"), now)
	disable(&all, o, now, rules, failures, last)
	u.Rows[""] = all
	for m, r := range u.Rows {
		if r.Equal(policy.Row{}) {
			delete(u.Rows, m)
		}
	}
	u.Probe = past(o.moment("lastProbeAt"), now)
	return u
}

// disable reads the lane of the profile. How far the lane had climbed is told by failureCounts only.
func disable(all *policy.Row, o object, now time.Time, rules policy.Rules, failures map[llm.Reason]int, last time.Time) {
	reason := disabledReason(o.text("disabledReason"), failures)
	longest := rules.BillingMax
	if reason == llm.ReasonAuthPermanent {
		longest = rules.AuthPermanentMax
	}
	w := window(o, "disabled", now, longest, reason)
	if w.Until.IsZero() {
		return
	}
	w.Reason = reason
	all.Disabled, all.LastFailureAt = w, last
	if all.FailureCounts == nil {
		all.FailureCounts = failures
	}
	if reason == llm.ReasonBilling {
		all.BillingCount = max(1, failures[reason])
	} else {
		all.AuthCount = max(1, failures[reason])
	}
}

// window reads <name>Until and <name>Reason.
func window(o object, name string, now time.Time, longest time.Duration, otherwise llm.Reason) policy.Window {
	until := o.moment(name + "Until")
	if !until.After(now) {
		return policy.Window{}
	}
	if end := now.Add(longest); until.After(end) {
		until = end
	}
	reason := llm.Reason(o.text(name + "Reason"))
	if !slices.Contains(blocking(), reason) {
		reason = otherwise
	}
	return policy.Window{Since: now, Until: until, Reason: reason}
}

// blocking are the reasons for which a profile rests.
func blocking() []llm.Reason {
	return []llm.Reason{llm.ReasonAuth, llm.ReasonAuthPermanent, llm.ReasonBilling, llm.ReasonRateLimit, llm.ReasonOverloaded, llm.ReasonTimeout}
}

func disabledReason(written string, failures map[llm.Reason]int) llm.Reason {
	switch r := llm.Reason(written); {
	case r == llm.ReasonBilling, r == llm.ReasonAuthPermanent:
		return r
	case r == llm.ReasonAuth, failures[llm.ReasonAuthPermanent] > failures[llm.ReasonBilling]:
		return llm.ReasonAuthPermanent
	}
	return llm.ReasonBilling
}

// mostCounted bounds counts; the ladders end long before.
const mostCounted = 1_000_000

func count(o object, key string) int {
	n, ok := o.number(key)
	if !ok || !(n > 0) {
		return 0
	}
	return int(min(n, mostCounted))
}

// counts reads failureCounts; reasons that we do not know are left out.
func counts(raw json.RawMessage) map[llm.Reason]int {
	o, err := members(raw)
	if err != nil {
		return nil
	}
	var out map[llm.Reason]int
	for _, m := range o {
		n := count(o, m.key)
		if n == 0 || !slices.Contains(blocking(), llm.Reason(m.key)) {
			continue
		}
		if out == nil {
			out = map[llm.Reason]int{}
		}
		out[llm.Reason(m.key)] = n
	}
	return out
}

// commonest returns the reason with the highest count, or otherwise.
func commonest(counts map[llm.Reason]int, otherwise llm.Reason) llm.Reason {
	best, most := otherwise, 0
	for _, r := range blocking() {
		if counts[r] > most {
			best, most = r, counts[r]
		}
	}
	return best
}

// past returns t unless it lies ahead: then a clock was wrong.
func past(t, now time.Time) time.Time {
	if t.After(now) {
		return time.Time{}
	}
	return t
}

// modelID returns the bare id of a model of a provider; "" where it is none.
func modelID(s, provider string) string {
	if len(s) > maxName || strings.ContainsFunc(s, notPrintable) {
		return ""
	}
	if head, rest, ok := strings.Cut(s, "/"); ok && rest != "" && llm.NormalizeProvider(head) == provider {
		return rest
	}
	return s
}
