package reply

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"understudy/chat"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/llm"
	"understudy/notices"
	"understudy/session"
)

// plan turns the session's selection into what failover is asked for.
func (t *turn) plan(s session.Session) failover.Plan {
	sel, selected := t.selection(s)
	models := t.cfg.Models
	p := failover.Plan{
		Ref:      failover.Ref{Agent: t.req.Agent, Session: t.req.Key, Turn: t.req.ID},
		Selected: selected,
		Strict:   policy.Strict(sel, models),
		Images:   t.hasImage(),
		Pin:      pinOf(s),
		Quiet:    t.req.internal(),
	}
	if p.Images && !p.Strict && !t.cfg.ImageModel.Primary.IsZero() {
		if info := t.r.deps.Models().Info(sel.Ref); info.Known && !info.Images {
			sel, models = policy.Selection{Ref: t.cfg.ImageModel.Primary, Source: policy.SourceDefault}, t.cfg.ImageModel
		}
	}
	p.Chain = policy.Chain(sel, models)
	if t.cfg.Timeout > 0 {
		p.Deadline = t.began.Add(t.cfg.Timeout)
	}
	return p
}

// hasImage reports whether the turn brings a picture. Those of earlier turns do not choose the model:
// for one that takes none they become a line of text.
func (t *turn) hasImage() bool {
	return slices.ContainsFunc(t.fresh, func(e session.Entry) bool { return llm.HasImage([]llm.Message{e.Message}) })
}

// selection returns what the turn asks for, and what counts as selected for notices: of a legacy
// automatic override that is its origin (spec §10).
func (t *turn) selection(s session.Session) (sel policy.Selection, selected llm.ModelRef) {
	if t.req.Selection != nil {
		return *t.req.Selection, t.req.Selection.Ref
	}
	sel = policy.Select(overrideOf(s), t.cfg.Models)
	if sel.Source == policy.SourceAuto {
		return sel, s.Override.Origin
	}
	return sel, sel.Ref
}

func overrideOf(s session.Session) policy.Override {
	return policy.Override{Ref: s.Override.Model, Source: s.Override.Source, Origin: s.Override.Origin}
}

func pinOf(s session.Session) policy.Pin {
	user := s.Pin.Source == session.SourceUser
	return policy.Pin{Profile: s.Pin.Profile, User: user, Advance: !user && s.Compactions > s.Pin.Compactions}
}

// settle writes what an answered turn leaves behind: the conversation, the decision trail, the
// notice state and the profile pin. It returns the notice to send, if any.
func (t *turn) settle(ctx context.Context, o Outcome, a failover.Answer) (notice string) {
	stored := t.finish(ctx, o, t.fresh, func(s *session.Session) error {
		notice = ""
		if t.req.internal() || t.req.Selection != nil { // a model chosen for this turn alone says nothing of the session
			return nil
		}
		now := *s
		if now.Override == (session.Override{}) {
			now.Override = t.inherited
		}
		notice = t.notice(s, now, a)
		t.pin(s, now, a)
		return nil
	})
	if !stored {
		return "" // what is not on record would be told again
	}
	if notice != "" && !t.r.deps.Notices().ShowsFallback(t.req.To.Kind) {
		return ""
	}
	return notice
}

// finish is the one write at the end of a turn. It reports whether it succeeded. A guest counts in none
// of the session's numbers; without news or an answer it leaves notes for people that no model is shown
// (spec/chat.md §5.5, §6.3, §6.4).
func (t *turn) finish(ctx context.Context, o Outcome, entries []session.Entry, change func(*session.Session) error) bool {
	if t.sess.ID == "" {
		return false
	}
	done := session.Turn{ID: t.req.ID, SessionID: t.sess.ID, Entries: entries, Usage: t.usage, Spend: t.spent, Change: change}
	if !t.req.guest() {
		done.Model = o.Model
	} else if done.NoTotals = true; o.Status != Answered {
		done.Entries = notes(entries)
	}
	var err error
	if t.req.Tail > 0 && t.req.internal() { // however often it runs
		err = t.r.deps.Sessions.AppendOnce(ctx, t.sess.Key, t.req.ID, done.Entries)
		done.Entries = nil
	}
	if err == nil {
		done.Decision, err = json.Marshal(t.decision(o))
	}
	if err == nil {
		err = t.r.deps.Sessions.FinishTurn(ctx, t.sess.Key, done)
	}
	if err != nil {
		t.log.ErrorContext(ctx, "turn_not_recorded", "error", err.Error())
	}
	return err == nil
}

func notes(entries []session.Entry) []session.Entry {
	list := slices.Clone(entries)
	for i := range list {
		list[i].Kind = session.KindNote
	}
	return list
}

// Decision is the record that /why shows of a turn; the session store keeps the latest ones.
type Decision struct {
	Turn     string            `json:"turn"`
	At       time.Time         `json:"at"`
	Duration time.Duration     `json:"duration"`
	Outcome  string            `json:"outcome"`
	Reason   llm.Reason        `json:"reason,omitempty"`
	Selected llm.ModelRef      `json:"selected"`
	Model    llm.ModelRef      `json:"model,omitzero"`
	Records  []failover.Record `json:"records"`
}

func (t *turn) decision(o Outcome) Decision {
	return Decision{
		Turn: t.req.ID, At: t.began, Duration: t.r.deps.Clock.Since(t.began), Outcome: o.Status.String(),
		Reason: o.Reason, Selected: t.plannedNow().Selected, Model: o.Model, Records: o.Trail,
	}
}

// notice applies the state machine of spec §10 to the newest selection. s is the row to change, now
// the same with what it inherits.
func (t *turn) notice(s *session.Session, now session.Session, a failover.Answer) string {
	_, selected := t.selection(now)
	was := pairOf(now)
	pair, change := notices.Next(was, selected, a.Served, t.because(selected))
	if a.Served == selected && s.Override.Auto() {
		s.Override = session.Override{} // the origin answers: the legacy override has no purpose any more
	}
	s.Notice = session.Pair(pair)
	switch change {
	case notices.Engaged:
		return notices.Fallback(pair)
	case notices.Cleared:
		return notices.FallbackCleared(was)
	}
	return ""
}

// pairOf returns the pair a session was last told. A legacy automatic override counts as one
// (spec §10, last point).
func pairOf(s session.Session) notices.Pair {
	p := notices.Pair(s.Notice)
	if o := s.Override; p.IsZero() && o.Auto() && !o.Origin.IsZero() && o.Model != o.Origin {
		p.Selected, p.Active = s.Override.Origin, s.Override.Model
	}
	return p
}

// because says why the selected model did not answer: its last failure or skip in this turn.
func (t *turn) because(selected llm.ModelRef) string {
	trail := t.run.Trail()
	for i := len(trail) - 1; i >= 0; i-- {
		if r := trail[i]; r.Ref() == selected && r.Reason != "" {
			return notices.Because(r.Reason, r.Detail)
		}
	}
	for _, r := range trail {
		if r.Ref() == selected {
			return notices.Because(llm.ReasonRefusal, "") // the provider let another model answer
		}
	}
	if t.run.Plan().Images {
		return notices.Because(llm.ReasonCapability, "")
	}
	return notices.Because("", "")
}

// pin keeps the profile that gave the session's first answer (spec §5.3). A user's pin is a lock
// and never touched; a fallback of another provider sets none.
func (t *turn) pin(s *session.Session, now session.Session, a failover.Answer) {
	_, selected := t.selection(now)
	if s.Pin.Source == session.SourceUser || a.Ref.Provider != selected.Provider {
		return
	}
	if s.Pin.Profile != "" && !t.run.Plan().Pin.Advance && !t.run.PinYielded() {
		return // a rotation inside a turn leaves the pin where it is; so does a compaction, until the next
	}
	s.Pin = session.Pin{Profile: a.Profile, Source: session.SourceAuto, Compactions: s.Compactions}
}

// dropLostPin forgets a user's pin on a profile that no longer exists, and says so (spec §3).
func (t *turn) dropLostPin(ctx context.Context) {
	lost := t.run.LostPin()
	if lost == "" || t.req.internal() {
		return
	}
	_, err := t.r.deps.Sessions.Update(ctx, t.req.Key, func(s *session.Session) error {
		if s.Pin.Profile == lost {
			s.Pin = session.Pin{}
		}
		return nil
	})
	if err != nil {
		t.log.WarnContext(ctx, "pin_not_dropped", "error", err.Error())
		return
	}
	t.out.Notify(t.outbound(chat.Notice, notices.PinDropped(lost)))
}
