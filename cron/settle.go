package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"understudy/cron/schedule"
)

// verdict is how a run ended.
type verdict struct {
	status Status
	reason Reason
	detail string // for people
	result Result
}

// verdictOf reads what a Runner returned.
func verdictOf(res Result, err error) verdict {
	v := verdict{status: OK, result: res}
	var skip *Skip
	var failed *Error
	switch {
	case err == nil:
	case errors.As(err, &skip):
		v.status, v.reason = Skipped, skip.Reason
	case errors.As(err, &failed):
		v.status, v.reason, v.detail = Failed, failed.Reason, failed.Detail
	default:
		v.status, v.reason = Failed, ReasonInternal
	}
	if v.reason != "" && v.detail == "" {
		v.detail = v.reason.Text()
	}
	return v
}

// settlement is what a run changes about its job.
type settlement struct {
	state   State // NextRunAt and SlotAt count only where the job was not edited meanwhile
	enabled bool
	remove  bool // the job is done for good
	letters []letter
}

// settle decides what a finished execution means for its job. Acted tells that the run must not be
// repeated. It is pure.
func settle(job Job, run Run, acted bool, s schedule.Schedule, cfg Config, now time.Time) settlement {
	st := job.State
	st.RunningSince, st.RunID = time.Time{}, ""
	st.LastStatus, st.LastCompletion, st.LastError = run.Status, run.Completion, run.Error
	st.LastRunAt = run.StartedAt
	if !run.Model.IsZero() {
		st.LastModel, st.LastFallback = run.Model, run.FallbackUsed
	}
	out := settlement{state: st, enabled: job.Enabled}
	switch {
	case run.Status == OK:
		out.state.ConsecutiveErrors, out.state.ConsecutiveSkips = 0, 0
	case !run.blames():
		// Somebody saw it, or it says nothing about the job.
	case run.Status == Skipped:
		out.state.ConsecutiveSkips++
	default:
		out.state.ConsecutiveErrors++
	}
	if s.Once() {
		out.once(job, run, acted, now)
	} else {
		out.recurring(job, run, s, now)
	}
	out.alert(job, run, cfg, now)
	return out
}

// blames reports whether a run says something about its job: one by hand was seen by somebody, and for
// an interruption the job can do nothing.
func (r Run) blames() bool {
	return r.Trigger != ByHand && r.Reason != ReasonInterrupted && r.Reason != ReasonStopped
}

// once settles a job with a single slot.
func (o *settlement) once(job Job, run Run, acted bool, now time.Time) {
	if run.Trigger == ByHand && !job.State.NextRunAt.IsZero() {
		return // its own time is still to come
	}
	again := run.Reason.Passing() && !acted && run.Trigger != ByHand && job.State.Tries < maxTries
	switch {
	case run.Status == OK:
		o.enabled = false
		o.remove = job.DeleteAfterRun && run.Completion == Succeeded
	case again:
		o.state.NextRunAt, o.state.SlotAt = now.Add(ladder(job.State.Tries)), run.ScheduledAt
	case run.Trigger != ByHand:
		o.enabled = false
		o.state.DisabledReason, o.state.DisabledAt = fmt.Sprintf("failed for good: %s", run.Reason.Text()), now
	}
}

// recurring delays the next run after a failure and ends a series of them.
func (o *settlement) recurring(job Job, run Run, s schedule.Schedule, now time.Time) {
	if run.Status != Failed || !run.blames() || o.state.NextRunAt.IsZero() {
		return
	}
	if n := o.state.ConsecutiveErrors; n >= maxErrors {
		o.enabled = false
		o.state.NextRunAt, o.state.SlotAt = time.Time{}, time.Time{}
		o.state.DisabledReason, o.state.DisabledAt = fmt.Sprintf("failed %d times in a row", n), now
		o.letters = append(o.letters, toOwner(job, run, fmt.Sprintf("was switched off: it failed %d times in a row, the last time because %s", n, run.Reason.Text()), "enable"))
		return
	}
	next, ok := delayed(s, now.Add(ladder(o.state.ConsecutiveErrors)))
	if ok && next.After(o.state.NextRunAt) {
		o.state.NextRunAt, o.state.SlotAt, o.state.planZone = next, next, planZone(job, s)
	}
}

// alert adds what people are to be told about a failure (spec/chat.md §5.7).
func (o *settlement) alert(job Job, run Run, cfg Config, now time.Time) {
	rules := job.FailureAlert.over(cfg.FailureAlert)
	final := !o.enabled && job.Enabled && run.Status != OK
	if final && run.Reason == ReasonInterrupted {
		o.letters = append(o.letters, toOwner(job, run, "was interrupted by a restart and is not repeated, because part of it may be done", "run"))
		return
	}
	failures := o.state.ConsecutiveErrors
	if rules.IncludeSkipped {
		failures += o.state.ConsecutiveSkips
	}
	counts := run.Status == Failed || run.Status == Skipped && (rules.IncludeSkipped || final)
	switch {
	case rules.Off || !counts || !run.blames():
		return
	case !final && (failures < rules.After || now.Sub(o.state.AlertedAt) < rules.Cooldown):
		return
	case final && len(o.letters) > 0:
		return // the owner is told already
	}
	o.state.AlertedAt = now
	o.letters = append(o.letters, alertLetter(job, run, rules, max(failures, 1), run.Reason, false))
}

// arrived settles how a result was delivered. It changes job and run, and is pure otherwise.
func arrived(job *Job, run *Run, how Arrival, cfg Config, now time.Time) (remove bool, letters []letter) {
	switch {
	case how == Arrived, how == Rejected && job.Delivery.BestEffort:
		run.Completion = Succeeded
	case how == Uncertain:
		run.Completion, run.Reason = Unknown, ReasonUnsettled
	default:
		run.Completion, run.Reason = Incomplete, ReasonRejected
	}
	if how == Rejected || how == Uncertain {
		run.Error = Reason(firstOf(string(run.Reason), string(ReasonRejected))).Text()
	}
	job.State.LastCompletion = run.Completion
	if run.Completion == Succeeded {
		job.State.ConsecutiveUndelivered = 0
		once := job.once() && job.State.NextRunAt.IsZero()
		return once && job.DeleteAfterRun, nil
	}
	job.State.LastError = run.Error
	if run.Completion == Unknown {
		return false, nil
	}
	job.State.ConsecutiveUndelivered++
	rules := job.FailureAlert.over(cfg.FailureAlert)
	n, once := job.State.ConsecutiveUndelivered, job.once()
	if rules.Off || !once && (n < rules.After || now.Sub(job.State.AlertedAt) < rules.Cooldown) {
		return false, nil
	}
	job.State.AlertedAt = now
	return false, []letter{alertLetter(*job, *run, rules, n, run.Reason, true)}
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// Tokens with which an answer says that there is nothing to say.
const (
	tokenOK     = "HEARTBEAT_OK"
	tokenSilent = "NO_REPLY"
)

// Deliverable returns what is to be sent of a final text; "" when the agent said that there is nothing
// to say. A token beside other text is only taken away.
func Deliverable(text string) string {
	text = strings.TrimSpace(text)
	for {
		bare := strings.Trim(text, "*_`~ \t\r\n")
		switch bare {
		case tokenOK, tokenSilent, "":
			return ""
		}
		before := text
		for _, token := range []string{tokenOK, tokenSilent} {
			if rest, ok := strings.CutPrefix(text, token); ok && boundary(rest, 0) {
				text = strings.TrimLeftFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(".:,;-–—", r) })
			}
			if rest, ok := strings.CutSuffix(text, token); ok && boundary(rest, len(rest)-1) {
				text = strings.TrimSpace(rest)
			}
		}
		if text == before {
			return text
		}
	}
}

// boundary reports whether a word ends beside byte i of s.
func boundary(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return true
	}
	c := s[i]
	return c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
}
