package classify

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// longest is the longest wait that is believed (spec/failover.md §6).
const longest = 7 * 24 * time.Hour

// hints are the statements of a response about when to come back.
type hints struct {
	after   time.Duration // retryDelay, resets_in_seconds, estimated_time, retry_after
	resetAt time.Time     // resets_at, quotaResetTimeStamp
	resetIn time.Duration // a window's own rest: exact once the present is known
	limits  limitHeaders  // rate-limit headers that a router repeats inside its body
}

// limitHeaders is what rate-limit headers say.
type limitHeaders struct {
	reset, remaining string
}

// member reads a key of an error object that speaks of time, and reports whether it was one.
func (h *hints) member(key []byte, v value) bool {
	switch string(key) {
	case "retrydelay", "quotaresetdelay":
		if d, err := time.ParseDuration(string(v.raw)); err == nil && h.after == 0 {
			h.after = d
		}
	case "retryafter", "retryafterseconds", "estimatedtime":
		h.seconds(&h.after, v, time.Second)
	case "retryafterms":
		h.seconds(&h.after, v, time.Millisecond)
	case "resetsinseconds", "resetinseconds", "resetafterseconds", "resetseconds":
		h.seconds(&h.after, v, time.Second)
		h.seconds(&h.resetIn, v, time.Second)
	case "resetsat", "resetat", "quotaresettimestamp", "resettime":
		if t, ok := instant(string(v.raw)); ok && h.resetAt.IsZero() {
			h.resetAt = t
		}
	default:
		return false
	}
	return true
}

func (h *hints) seconds(d *time.Duration, v value, unit time.Duration) {
	if f, ok := v.number(); ok && *d == 0 && f > 0 && f < 1e10 {
		*d = time.Duration(f * float64(unit))
	}
}

// nestedHeaders reads response headers that stand inside a body.
func (h *hints) nestedHeaders(obj []byte) {
	for k, v := range members(obj) {
		var buf [48]byte
		switch string(fold(&buf, k)) {
		case "xratelimitreset":
			h.limits.reset = string(v.raw)
		case "xratelimitremaining":
			h.limits.remaining = string(v.raw)
		case "retryafter":
			h.seconds(&h.after, v, time.Second)
		case "retryafterms":
			h.seconds(&h.after, v, time.Millisecond)
		}
	}
}

// times weighs the hints: headers before the body before text (testdata/README.md). now may be zero;
// then what needs a present is left out. limited tells that a limit was hit, without which the
// reset headers every answer carries mean nothing.
func (h *hints) times(header map[string]string, msg []byte, now time.Time, limited bool) (after time.Duration, resetAt time.Time) {
	if date := header["date"]; now.IsZero() && date != "" {
		now, _ = time.Parse(time.RFC1123, date)
	}
	after, resetAt = retryAfter(header, now)
	fromHeader := after > 0 || !resetAt.IsZero()
	if after == 0 {
		after = h.after
	}
	text := ""
	if bytes.ContainsAny(msg, "0123456789") {
		text = strings.ToLower(string(msg[:min(len(msg), maxMatched)]))
	}
	if after == 0 {
		after = statedWait(text)
	}
	if !h.resetAt.IsZero() {
		resetAt = h.resetAt
	}
	if resetAt.IsZero() {
		resetAt = statedReset(text)
	}
	if resetAt.IsZero() && h.resetIn > 0 && !now.IsZero() {
		resetAt = now.Add(h.resetIn)
	}
	if limited && !fromHeader && resetAt.IsZero() {
		var wait time.Duration
		resetAt, wait = limitReset(header, h.limits)
		if after == 0 {
			after = wait
		}
	}
	if after < 0 || after > longest {
		after = 0
	}
	if !now.IsZero() && (!resetAt.After(now) || resetAt.Sub(now) > longest) {
		resetAt = time.Time{}
	}
	return after, resetAt
}

// retryAfter reads retry-after-ms, and retry-after in seconds or as a date.
func retryAfter(header map[string]string, now time.Time) (after time.Duration, at time.Time) {
	if len(header) == 0 {
		return 0, at
	}
	if ms, err := strconv.ParseFloat(strings.TrimSpace(header["retry-after-ms"]), 64); err == nil && ms > 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond)), at
	}
	v := strings.TrimSpace(header["retry-after"])
	if v == "" {
		return 0, at
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s > 0 && s < 1e9 {
			return time.Duration(s * float64(time.Second)), at
		}
		return 0, at
	}
	for _, layout := range [...]string{time.RFC1123, time.RFC1123Z, time.RFC850, time.ANSIC} {
		if t, err := time.Parse(layout, v); err == nil {
			if now.IsZero() {
				return 0, t.UTC()
			}
			return max(0, t.Sub(now)), at
		}
	}
	return 0, at
}

// limitReset reads the reset headers of a limit that is used up.
func limitReset(header map[string]string, nested limitHeaders) (at time.Time, after time.Duration) {
	if len(header) == 0 && nested.reset == "" {
		return at, 0
	}
	if t, ok := instant(header["anthropic-ratelimit-unified-reset"]); ok && header["anthropic-ratelimit-unified-status"] != "allowed" {
		return t, 0
	}
	for _, name := range [...]string{"requests", "tokens", "input-tokens", "output-tokens"} {
		prefix := "anthropic-ratelimit-" + name
		if t, ok := instant(header[prefix+"-reset"]); ok && header[prefix+"-remaining"] == "0" && t.After(at) {
			at = t
		}
	}
	for _, window := range [...]string{"primary", "secondary"} {
		prefix := "x-codex-" + window
		if t, ok := instant(header[prefix+"-reset-at"]); ok && header[prefix+"-used-percent"] == "100" && t.After(at) {
			at = t
		}
	}
	if !at.IsZero() {
		return at, 0
	}
	for _, l := range [...]limitHeaders{
		{header["x-ratelimit-reset"], header["x-ratelimit-remaining"]},
		nested,
		{header["x-ratelimit-reset-requests"], orOne(header["x-ratelimit-remaining-requests"])},
		{header["x-ratelimit-reset-tokens"], orOne(header["x-ratelimit-remaining-tokens"])},
	} {
		if l.reset == "" || l.remaining != "" && l.remaining != "0" {
			continue
		}
		if t, ok := instant(l.reset); ok {
			return t, 0
		}
		if d, err := time.ParseDuration(l.reset); err == nil {
			after = max(after, d)
		}
	}
	return at, after
}

// orOne reads a missing count as "some are left".
func orOne(remaining string) string {
	if remaining == "" {
		return "1"
	}
	return remaining
}

// instant reads an absolute time: RFC 3339, or an epoch in seconds or milliseconds.
func instant(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 10 || len(s) > 40 {
		return time.Time{}, false
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.UTC(), true
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || f < 1e9 || f > 1e13:
		return time.Time{}, false
	case f >= 1e11:
		return time.UnixMilli(int64(f)).UTC(), true
	}
	return time.Unix(int64(f), 0).UTC(), true
}
