package session

import (
	"encoding/json"
	"fmt"
	"time"

	"understudy/llm"
	"understudy/session/internal/sessiondb"
)

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

// refText stores a model reference; one that names no provider keeps its bare id.
func refText(r llm.ModelRef) string {
	if r.Provider == "" {
		return r.Model
	}
	return r.String()
}

// parseRef reads a stored reference. An old row may hold a bare id: that stays one, and whoever
// looks at it sees that it has no provider.
func parseRef(s string) llm.ModelRef {
	ref, err := llm.ParseRef(s)
	if err != nil {
		return llm.ModelRef{Model: s}
	}
	return ref
}

// unpriced stands in the file for a cost that is not known.
const unpriced = -1

func toRow(s Session) (sessiondb.PutSessionParams, error) {
	address, err := json.Marshal(s.Address)
	if err != nil {
		return sessiondb.PutSessionParams{}, fmt.Errorf("address: %w", err)
	}
	pending := int64(0)
	if s.SwitchPending {
		pending = 1
	}
	cost := int64(unpriced)
	if s.LastTurn.Priced {
		cost = s.LastTurn.CostMicros
	}
	return sessiondb.PutSessionParams{
		Key: s.Key, SessionID: s.ID, AgentID: s.AgentID, ParentKey: s.Parent,
		ChatType: string(s.Address.Kind), AddressJson: string(address),
		StartedAt: millis(s.StartedAt), LastInteractionAt: millis(s.LastInteractionAt), UpdatedAt: millis(s.UpdatedAt),
		ModelOverride: refText(s.Override.Model), ModelOverrideSource: s.Override.Source,
		ModelOverrideOrigin:       refText(s.Override.Origin),
		AuthProfileOverride:       string(s.Pin.Profile),
		AuthProfileOverrideSource: s.Pin.Source, AuthProfileOverrideCompactionCount: int64(s.Pin.Compactions),
		FallbackNoticeSelected: refText(s.Notice.Selected), FallbackNoticeActive: refText(s.Notice.Active),
		FallbackNoticeReason: s.Notice.Reason, LiveModelSwitchPending: pending,
		Think: s.Think, Verbose: s.Verbose, UsageMode: s.UsageMode, QueueJson: string(s.Queue), TtsAuto: s.TTSAuto,
		CompactionCount: int64(s.Compactions), TokensIn: s.TokensIn, TokensOut: s.TokensOut,
		TokensContext: s.TokensContext, Status: s.Status,
		LastModel: refText(s.LastModel), UsageSince: millis(s.UsageSince),
		LastTurnIn: s.LastTurn.In, LastTurnOut: s.LastTurn.Out, LastTurnCostMicros: cost, FallbackNoticeSince: millis(s.NoticeSince),
	}, nil
}

func fromRow(r sessiondb.Session) (Session, error) {
	s := Session{
		Key: r.Key, ID: r.SessionID, AgentID: r.AgentID, Parent: r.ParentKey,
		StartedAt: fromMillis(r.StartedAt), LastInteractionAt: fromMillis(r.LastInteractionAt), UpdatedAt: fromMillis(r.UpdatedAt),
		Override: Override{
			Model: parseRef(r.ModelOverride), Source: r.ModelOverrideSource, Origin: parseRef(r.ModelOverrideOrigin),
		},
		Pin: Pin{
			Profile: llm.ProfileID(r.AuthProfileOverride), Source: r.AuthProfileOverrideSource,
			Compactions: int(r.AuthProfileOverrideCompactionCount),
		},
		Notice: Pair{
			Selected: parseRef(r.FallbackNoticeSelected), Active: parseRef(r.FallbackNoticeActive), Reason: r.FallbackNoticeReason,
		},
		SwitchPending: r.LiveModelSwitchPending != 0,
		Think:         r.Think, Verbose: r.Verbose, UsageMode: r.UsageMode, TTSAuto: r.TtsAuto,
		Compactions: int(r.CompactionCount), TokensIn: r.TokensIn, TokensOut: r.TokensOut,
		TokensContext: r.TokensContext, Status: r.Status,
		LastModel: parseRef(r.LastModel), UsageSince: fromMillis(r.UsageSince),
		LastTurn:    LastTurn{In: r.LastTurnIn, Out: r.LastTurnOut},
		NoticeSince: fromMillis(r.FallbackNoticeSince),
	}
	if r.LastTurnCostMicros != unpriced {
		s.LastTurn.CostMicros, s.LastTurn.Priced = r.LastTurnCostMicros, true
	}
	if r.QueueJson != "" {
		s.Queue = json.RawMessage(r.QueueJson)
	}
	if err := json.Unmarshal([]byte(r.AddressJson), &s.Address); err != nil {
		return Session{}, fmt.Errorf("address of session %s: %w", r.Key, err)
	}
	return s, nil
}
