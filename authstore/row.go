package authstore

import (
	"encoding/json"
	"fmt"
	"time"

	"understudy/authstore/internal/authdb"
	"understudy/failover/policy"
	"understudy/llm"
)

// millis is a stored time; 0 stands for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func toRow(k policy.Key, r policy.Row) (authdb.PutHealthParams, error) {
	counts := []byte("{}")
	if len(r.FailureCounts) > 0 {
		var err error
		if counts, err = json.Marshal(r.FailureCounts); err != nil {
			return authdb.PutHealthParams{}, err
		}
	}
	return authdb.PutHealthParams{
		Profile: string(k.Profile), Model: k.Model,
		LastUsed: millis(r.LastUsed), LastFailureAt: millis(r.LastFailureAt),
		ErrorCount: int64(r.ErrorCount), BillingCount: int64(r.BillingCount), AuthCount: int64(r.AuthCount),
		FailureCountsJson: string(counts),
		CooldownSince:     millis(r.Cooldown.Since), CooldownUntil: millis(r.Cooldown.Until),
		CooldownReason: string(r.Cooldown.Reason), CooldownDetail: string(r.Cooldown.Detail), CooldownStated: flag(r.Cooldown.Stated),
		DisabledSince: millis(r.Disabled.Since), DisabledUntil: millis(r.Disabled.Until),
		DisabledReason: string(r.Disabled.Reason), DisabledDetail: string(r.Disabled.Detail), DisabledStated: flag(r.Disabled.Stated),
	}, nil
}

func fromRow(h authdb.Health) (policy.Row, error) {
	row := policy.Row{
		LastUsed: fromMillis(h.LastUsed), LastFailureAt: fromMillis(h.LastFailureAt),
		ErrorCount: int(h.ErrorCount), BillingCount: int(h.BillingCount), AuthCount: int(h.AuthCount),
		Cooldown: window(h.CooldownSince, h.CooldownUntil, h.CooldownReason, h.CooldownDetail, h.CooldownStated),
		Disabled: window(h.DisabledSince, h.DisabledUntil, h.DisabledReason, h.DisabledDetail, h.DisabledStated),
	}
	if h.FailureCountsJson != "{}" {
		if err := json.Unmarshal([]byte(h.FailureCountsJson), &row.FailureCounts); err != nil {
			return policy.Row{}, fmt.Errorf("failure counts of %s: %w", h.Profile, err)
		}
	}
	return row, nil
}

func window(since, until int64, reason, detail string, stated int64) policy.Window {
	return policy.Window{
		Since: fromMillis(since), Until: fromMillis(until),
		Reason: llm.Reason(reason), Detail: llm.Detail(detail), Stated: stated != 0,
	}
}
