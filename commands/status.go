package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

// status is the card of spec/chat.md §3.5 with the lines of spec/failover.md §11. Lines without
// data are left out.
func (r *Registry) status(ctx context.Context, c Call, _ string) (Reply, error) {
	s, inherited, err := r.session(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	lines := []string{fmt.Sprintf("🤖 %s · %s · up %s", c.Agent, r.deps.Version, span(r.deps.Clock.Since(r.deps.Started)))}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	lines = append(lines, r.modelLine(s, c))
	if inherited != "" && inherited != s.Key {
		add("🧬 The choice comes from the conversation this thread belongs to.")
	}
	lines = append(lines, r.failoverLines(ctx, s, c)...)
	if c.details() {
		lines = append(lines, r.healthLines(ctx, c)...)
	}
	if s.TokensContext > 0 || s.Compactions > 0 {
		add("📚 Context: %s · 🧹 Compactions: %d", r.contextText(s, c), s.Compactions)
	}
	if s.TokensIn+s.TokensOut > 0 {
		add("🧮 Session: %d tokens in / %d out", s.TokensIn, s.TokensOut)
	}
	if s.Think != "" {
		add("⚙️ Think: %s", s.Think)
	}
	if st := r.deps.Lanes.State(c.Key); st.Active || st.Queued > 0 {
		add("⏳ Working since %s · %d waiting", r.when(c.Agent, st.Since), st.Queued)
	}
	if c.details() {
		add("🧵 Session: %s · started %s", s.Key, r.when(c.Agent, s.StartedAt))
		if list := r.deps.Channels(); len(list) > 0 {
			var parts []string
			for _, x := range list {
				parts = append(parts, x.Name+" "+x.State)
			}
			add("📡 %s", strings.Join(parts, " · "))
		}
		for _, p := range r.deps.Problems(ctx) {
			add("⚠️ %s", p)
		}
	}
	return Reply{Text: strings.Join(lines, "\n")}, nil
}

// modelLine names the selected model, where the choice comes from, and the locked profile.
func (r *Registry) modelLine(s session.Session, c Call) string {
	sel := r.selection(s, c.Agent)
	source := string(sel.Source)
	switch sel.Source {
	case policy.SourceUser:
		source = "pinned by you"
	case policy.SourceAuto:
		source = fmt.Sprintf("automatic, standing in for %s", s.Override.Origin)
	}
	line := fmt.Sprintf("🧠 Model: %s (%s)", sel.Ref, source)
	if s.Pin.Source == session.SourceUser && c.details() {
		line += " · profile " + string(s.Pin.Profile) + " (locked)"
	}
	return line
}

// failoverLines tell who answers instead, who would, and how a pin is cleared.
func (r *Registry) failoverLines(ctx context.Context, s session.Session, c Call) []string {
	var lines []string
	models := r.deps.Models.Agent(c.Agent)
	sel := r.selection(s, c.Agent)
	if s.Notice != (session.Pair{}) && s.Notice.Active != s.Notice.Selected {
		lines = append(lines, fmt.Sprintf("↪️ Answering: %s — %s", s.Notice.Active, s.Notice.Reason))
	}
	strict := policy.Strict(sel, models)
	if !strict {
		if chain := policy.Chain(sel, models)[1:]; len(chain) > 0 {
			names := make([]string, len(chain))
			for i, ref := range chain {
				names[i] = ref.String()
			}
			lines = append(lines, "🎭 Fallbacks: "+strings.Join(names, ", "))
		}
	}
	if sel.Source == policy.SourceUser {
		lines = append(lines, fmt.Sprintf("📌 This session is pinned to %s; config primary %s will apply to new/unpinned sessions. /model default clears it.", sel.Ref, models.Primary))
	}
	if until := r.blockedUntil(ctx, c.Agent, sel.Ref); until != "" {
		lines = append(lines, fmt.Sprintf("⏸ %s: %s", sel.Ref, until))
	}
	return lines
}

// window is one thing that keeps a profile from serving.
type window struct {
	key policy.Key
	policy.Window
	disabled bool
}

// unhealthy lists the active windows, in a fixed order.
func unhealthy(snap policy.Snapshot, now time.Time) []window {
	var out []window
	for k, row := range snap.Health {
		if row.Disabled.Active(now) {
			out = append(out, window{k, row.Disabled, true})
		}
		if row.Cooldown.Active(now) {
			out = append(out, window{k, row.Cooldown, false})
		}
	}
	slices.SortFunc(out, func(a, b window) int {
		if d := strings.Compare(string(a.key.Profile), string(b.key.Profile)); d != 0 {
			return d
		}
		if d := strings.Compare(a.key.Model, b.key.Model); d != 0 {
			return d
		}
		return a.Until.Compare(b.Until)
	})
	return out
}

func (r *Registry) windowText(agent string, w window) string {
	what := "cooling"
	if w.disabled {
		what = "disabled"
	}
	text := fmt.Sprintf("%s (%s) until %s", what, words(w.Reason), r.when(agent, w.Until))
	if w.key.Model != "" {
		text += " for " + w.key.Model
	}
	return text
}

func (r *Registry) healthLines(ctx context.Context, c Call) []string {
	snap, err := r.deps.Health(ctx, c.Agent)
	if err != nil {
		return nil // Problems says so
	}
	var lines []string
	for i, w := range unhealthy(snap, r.deps.Clock.Now()) {
		if i == 8 {
			lines = append(lines, "🔑 … more: /model status")
			break
		}
		lines = append(lines, fmt.Sprintf("🔑 %s: %s", w.key.Profile, r.windowText(c.Agent, w)))
	}
	return lines
}

func (r *Registry) contextText(s session.Session, c Call) string {
	size := r.deps.Models.Info(r.selection(s, c.Agent).Ref).ContextWindow
	if size == 0 {
		return fmt.Sprintf("%d tokens", s.TokensContext)
	}
	return fmt.Sprintf("%d/%d (%d%%)", s.TokensContext, size, s.TokensContext*100/int64(size))
}

// words says a reason as people do.
func words(reason llm.Reason) string {
	switch reason {
	case llm.ReasonAuth:
		return "sign-in failed"
	case llm.ReasonAuthPermanent:
		return "credential revoked"
	case llm.ReasonBilling:
		return "billing"
	case llm.ReasonRateLimit:
		return "rate limit"
	case llm.ReasonContextOverflow:
		return "conversation too long"
	case llm.ReasonModelNotFound:
		return "model not available"
	case llm.ReasonEmptyResponse:
		return "empty answer"
	case llm.ReasonFormat:
		return "request rejected"
	case llm.ReasonRefusal:
		return "declined"
	case llm.ReasonAborted:
		return "stopped"
	case llm.ReasonCapability:
		return "cannot take this message"
	case llm.ReasonInternal:
		return "a fault of mine"
	}
	return strings.ReplaceAll(string(reason), "_", " ")
}

// decision mirrors what package reply stores of a turn.
type decision struct {
	At       time.Time     `json:"at"`
	Duration time.Duration `json:"duration"`
	Outcome  string        `json:"outcome"`
	Reason   llm.Reason    `json:"reason"`
	Selected llm.ModelRef  `json:"selected"`
	Model    llm.ModelRef  `json:"model"`
	Records  []record      `json:"records"`
}

type record struct {
	Provider  string        `json:"provider"`
	Model     string        `json:"model"`
	Profile   llm.ProfileID `json:"profile"`
	Skipped   bool          `json:"skipped"`
	Why       policy.Why    `json:"why"`
	Reason    llm.Reason    `json:"reason"`
	Status    int           `json:"status"`
	Error     string        `json:"error"`
	StartedAt time.Time     `json:"startedAt"`
	Duration  time.Duration `json:"duration"`
	Until     time.Time     `json:"until"`
}

// maxWhy bounds the lines of /why.
const maxWhy = 30

// why shows the decision trail of the last turn (spec/failover.md §11).
func (r *Registry) why(ctx context.Context, c Call, _ string) (Reply, error) {
	list, err := r.deps.Sessions.Decisions(ctx, c.Key, 1)
	if err != nil {
		return Reply{}, err
	}
	if len(list) == 0 {
		return Reply{Text: "Nothing has been answered here yet."}, nil
	}
	var d decision
	if err := json.Unmarshal(list[0].Record, &d); err != nil {
		return Reply{}, fmt.Errorf("decision record: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "🔎 Last turn, %s, %s: %s", r.when(c.Agent, d.At), seconds(d.Duration), d.Outcome)
	if !d.Model.IsZero() {
		fmt.Fprintf(&b, " by %s", d.Model)
	}
	if d.Selected != d.Model && !d.Selected.IsZero() {
		fmt.Fprintf(&b, " (selected %s)", d.Selected)
	}
	if d.Reason != "" {
		fmt.Fprintf(&b, " — %s", words(d.Reason))
	}
	for i, x := range d.Records {
		if i == maxWhy {
			fmt.Fprintf(&b, "\n… and %d more", len(d.Records)-i)
			break
		}
		b.WriteString("\n" + r.whyLine(c, i+1, x))
	}
	return Reply{Text: b.String()}, nil
}

func (r *Registry) whyLine(c Call, n int, x record) string {
	text := fmt.Sprintf("%d. %s/%s", n, x.Provider, x.Model)
	if x.Profile != "" && c.details() {
		text += " @" + string(x.Profile)
	}
	switch {
	case x.Skipped:
		text += " — skipped: " + words(x.Reason)
		if x.Why == policy.WhyNoProfile {
			text += ", no credential"
		}
		if !x.Until.IsZero() {
			text += " until " + r.when(c.Agent, x.Until)
		}
	case x.Reason == "":
		text += " — answered"
	default:
		text += " — " + words(x.Reason)
		if x.Status != 0 {
			text += fmt.Sprintf(" (status %d)", x.Status)
		}
	}
	if !x.Skipped {
		text += ", " + seconds(x.Duration)
	}
	if why := whyWords(x.Why); why != "" && !x.Skipped {
		text += "; " + why
	}
	if x.Error != "" && x.Reason != "" && c.Owner && !c.group() {
		text += "\n   " + x.Error
	}
	return text
}

// whyWords says why an attempt was made, where that is not plain.
func whyWords(w policy.Why) string {
	switch w {
	case policy.WhyRotation:
		return "with the next profile"
	case policy.WhyProbe:
		return "to see whether it is back"
	case policy.WhySibling, policy.WhyLastResort:
		return "although it was cooling"
	case policy.WhyPassRetry:
		return "in another round"
	case policy.WhyStateless:
		return "once more without its session"
	case policy.WhyRepair:
		return "once more with a repaired transcript"
	case policy.WhyCompacted:
		return "once more after compaction"
	case policy.WhyAskAgain:
		return "after the wait it asked for"
	case policy.WhyContinue:
		return "next step"
	}
	return ""
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// failover shows the chain with the state of every candidate.
func (r *Registry) failover(ctx context.Context, c Call, _ string) (Reply, error) {
	s, _, err := r.session(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	snap, err := r.deps.Health(ctx, c.Agent)
	if err != nil {
		return Reply{}, err
	}
	models := r.deps.Models.Agent(c.Agent)
	sel := r.selection(s, c.Agent)
	var b strings.Builder
	fmt.Fprintf(&b, "🎭 Chain of this conversation")
	if policy.Strict(sel, models) {
		b.WriteString(" (strict)")
	}
	for i, ref := range policy.Chain(sel, models) {
		fmt.Fprintf(&b, "\n%d. %s", i+1, ref)
		profiles := r.deps.Models.Profiles(ctx, c.Agent, ref)
		if len(profiles) == 0 {
			b.WriteString(" — no credential")
		}
		for _, p := range profiles {
			w, blocked := snap.Health.Block(p, ref.Model, r.deps.Clock.Now())
			state := "ready"
			if blocked {
				state = fmt.Sprintf("%s until %s", words(w.Reason), r.when(c.Agent, w.Until))
			}
			fmt.Fprintf(&b, "\n   %s: %s", p, state)
		}
	}
	return Reply{Text: b.String()}, nil
}
