package commands

import (
	"context"
	"fmt"
	"strings"

	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

// maxWindows bounds the unhealthy profiles that /status lists.
const maxWindows = 8

// status is the card of spec/chat.md §3.5 with the lines of spec/failover.md §11. Lines without
// data are left out.
func (r *Registry) status(ctx context.Context, c Call, _ string) (Reply, error) {
	v, err := r.look(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	lines := []string{fmt.Sprintf("🤖 %s · %s · up %s", c.Agent, r.deps.Version, span(r.deps.Clock.Since(r.deps.Started))), v.modelLine()}
	lines = append(lines, v.failoverLines()...)
	lines = append(lines, v.healthLines(ctx)...)
	lines = append(lines, v.sessionLines()...)
	if c.details() {
		if list := r.deps.Channels(); len(list) > 0 {
			parts := make([]string, len(list))
			for i, x := range list {
				parts[i] = x.Name + " " + x.State
			}
			lines = append(lines, "📡 "+strings.Join(parts, " · "))
		}
	}
	if c.Owner {
		for _, p := range r.deps.Problems(ctx) {
			lines = append(lines, "⚠️ "+p)
		}
	}
	return Reply{Text: strings.Join(lines, "\n")}, nil
}

// modelLine names the selected model, where the choice comes from, and a locked profile.
func (v view) modelLine() string {
	if v.sel.Ref.IsZero() {
		return "🧠 Model: none is configured"
	}
	source := string(v.sel.Source)
	switch v.sel.Source {
	case policy.SourceUser:
		source = "pinned by you"
	case policy.SourceAuto:
		source = fmt.Sprintf("automatic, standing in for %s", v.s.Override.Origin)
	}
	line := fmt.Sprintf("🧠 Model: %s (%s)", v.sel.Ref, source)
	if v.s.Pin.Source == session.SourceUser && v.call.details() {
		line += " · profile " + code(string(v.s.Pin.Profile)) + " (locked)"
	}
	return line
}

// pinnedLine says that the session is pinned and how to clear it, "" when it is not.
func (v view) pinnedLine() string {
	if v.sel.Source != policy.SourceUser {
		return ""
	}
	text := fmt.Sprintf("📌 This session is pinned to %s", v.sel.Ref)
	if v.inherited() {
		text = fmt.Sprintf("📌 This thread takes %s from the conversation it belongs to", v.sel.Ref)
	}
	if p := v.models.Primary; !p.IsZero() && p != v.sel.Ref {
		text += fmt.Sprintf("; config primary %s will apply to new/unpinned sessions", p)
	}
	return text + ". /model default clears it."
}

// failoverLines tell who answers instead, who would, and how a pin is cleared.
func (v view) failoverLines() []string {
	var lines []string
	selected := v.sel.Ref
	if v.sel.Source == policy.SourceAuto {
		selected = v.s.Override.Origin
	}
	// A pair of an older selection says nothing about this one (spec/failover.md §10).
	if p := v.s.Notice; p.Selected == selected && p.Active != selected && !p.Active.IsZero() {
		lines = append(lines, fmt.Sprintf("↪️ Answering: %s — %s", p.Active, p.Reason))
	}
	if chain := policy.Chain(v.sel, v.models)[1:]; len(chain) > 0 { // a strict one ends with the selected model
		names := make([]string, len(chain))
		for i, ref := range chain {
			names[i] = ref.String()
		}
		lines = append(lines, "🎭 Fallbacks: "+strings.Join(names, ", "))
	}
	if line := v.pinnedLine(); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// healthLines tell what the selected model signs in with and what is unhealthy. Where profiles must
// not be named, only how the model is.
func (v view) healthLines(ctx context.Context) []string {
	if v.blind || v.sel.Ref.IsZero() {
		return nil // Problems says so
	}
	if !v.call.details() {
		if until := v.blocked(ctx, v.sel.Ref); until != "" {
			return []string{fmt.Sprintf("⏸ %s: %s", v.sel.Ref, until)}
		}
		return nil
	}
	lines := []string{"🔑 Auth: no credential for " + v.sel.Ref.Provider}
	var first llm.ProfileID
	if list := v.profiles(ctx, v.sel.Ref); len(list) > 0 {
		first = list[0]
		lines[0] = "🔑 Auth: " + v.profile(first)
	}
	var others []window
	for _, w := range v.unhealthy() {
		if w.key.Profile == first && (w.key.Model == "" || w.key.Model == v.sel.Ref.Model) {
			lines[0] += " · " + v.text(w)
			continue
		}
		others = append(others, w)
	}
	for i, w := range others {
		if i == maxWindows {
			lines = append(lines, fmt.Sprintf("🔑 … and %d more: /model status", len(others)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("🔑 %s: %s", code(string(w.key.Profile)), v.text(w)))
	}
	return lines
}

// sessionLines tell how the conversation itself is.
func (v view) sessionLines() []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	s := v.s
	if s.TokensContext > 0 || s.Compactions > 0 {
		add("📚 Context: %s · 🧹 Compactions: %d", v.contextText(), s.Compactions)
	}
	if s.TokensIn+s.TokensOut > 0 {
		add("🧮 Session: %d tokens in / %d out", s.TokensIn, s.TokensOut)
	}
	if s.Think != "" {
		add("⚙️ Think: %s", s.Think)
	}
	switch st := v.r.deps.Lanes.State(v.call.Key); {
	case st.Active:
		add("⏳ Working since %s · %d waiting", v.when(st.Since), st.Queued)
	case st.Queued > 0:
		add("⏳ %d waiting", st.Queued)
	}
	if v.call.details() {
		add("🧵 Session: %s · started %s", code(s.Key), v.when(s.StartedAt))
	} else {
		add("🧵 Session: started %s", v.when(s.StartedAt))
	}
	return lines
}

func (v view) contextText() string {
	used, size := v.s.TokensContext, v.r.deps.Models.Info(v.sel.Ref).ContextWindow
	if size == 0 {
		return fmt.Sprintf("%d tokens", used)
	}
	return fmt.Sprintf("%d/%d (%d%%)", used, size, used*100/int64(size))
}

// failover shows the chain with the state of every candidate.
func (r *Registry) failover(ctx context.Context, c Call, args string) (Reply, error) {
	if args != "" && !strings.EqualFold(args, "status") {
		return Reply{Text: "/failover shows the chain; it takes no argument but status."}, nil
	}
	v, err := r.look(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	if v.blind {
		return Reply{Text: "⚠️ The stored credentials cannot be read; /status says more."}, nil
	}
	if v.sel.Ref.IsZero() {
		return Reply{Text: "No model is configured yet."}, nil
	}
	title := "🎭 Chain of this conversation"
	if policy.Strict(v.sel, v.models) {
		title += " (strict)"
	}
	lines := []string{title}
	for i, ref := range policy.Chain(v.sel, v.models) {
		line := fmt.Sprintf("%d. %s", i+1, ref)
		profiles := v.profiles(ctx, ref)
		if len(profiles) == 0 {
			line += " — no credential"
		}
		lines = append(lines, line)
		for _, p := range profiles {
			state := "ready"
			if w, blocked := v.health.Health.Block(p, ref.Model, v.now); blocked {
				state = fmt.Sprintf("%s until %s", words(w.Reason, w.Detail), v.when(w.Until))
			}
			lines = append(lines, fmt.Sprintf("   %s: %s", code(string(p)), state))
		}
		if last := v.health.LastProbe[ref.Provider]; last.Add(policy.ProbeThrottle).After(v.now) {
			lines = append(lines, "   next probe not before "+v.when(last.Add(policy.ProbeThrottle)))
		}
	}
	return Reply{Text: strings.Join(lines, "\n")}, nil
}
