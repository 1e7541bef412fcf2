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
	lines = append(lines, v.failoverLines(ctx)...)
	lines = append(lines, v.healthLines(ctx)...)
	lines = append(lines, v.sessionLines(ctx)...)
	if c.details() {
		if list := r.deps.Channels(); len(list) > 0 {
			parts := make([]string, len(list))
			for i, x := range list {
				parts[i] = x.Name + " " + x.State
				if !x.Since.IsZero() {
					parts[i] += fmt.Sprintf(" (%s)", span(v.now.Sub(x.Since)))
				}
			}
			lines = append(lines, "📡 "+strings.Join(parts, " · "))
		}
		if line := v.timeLine(ctx); line != "" {
			lines = append(lines, line)
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

// lead is the model that others stand in for.
func (v view) lead() llm.ModelRef {
	if v.sel.Source == policy.SourceAuto {
		return v.s.Override.Origin
	}
	return v.sel.Ref
}

// failoverLines tell who answers instead, who would, and how a pin is cleared.
func (v view) failoverLines(ctx context.Context) []string {
	var lines []string
	selected := v.lead()
	// A pair of an older selection says nothing about this one (spec/failover.md §10).
	if p := v.s.Notice; p.Selected == selected && p.Active != selected && !p.Active.IsZero() {
		lines = append(lines, v.standInLine(ctx, p))
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

// standInLine tells who answers instead, and until when that will hardly change.
func (v view) standInLine(ctx context.Context, p session.Pair) string {
	line := "↪️ Answering: " + p.Active.String()
	if p.Reason != "" {
		line += " — " + p.Reason
	}
	if !v.s.NoticeSince.IsZero() {
		line += ", since " + v.when(v.s.NoticeSince)
	}
	if again := v.askedAgain(ctx, p.Selected); again != "" {
		line += "; " + again
	}
	return line
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
func (v view) sessionLines(ctx context.Context) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	s := v.s
	if s.TokensContext > 0 || s.Compactions > 0 {
		add("📚 Context: %s · 🧹 Compactions: %d", v.contextText(), s.Compactions)
	}
	if line := v.usageLine(); line != "" {
		lines = append(lines, line)
	}
	st := v.r.deps.Lanes.State(v.call.Key)
	lines = append(lines, v.settings(ctx, st.Queued))
	if st.Active {
		line := "⏳ Working since " + v.when(st.Since)
		if u, runs := v.r.deps.Underway(v.call.Key); runs {
			if text := u.short(v.r.trail(v.call)); text != "" {
				line += ": " + text
			}
		}
		lines = append(lines, line)
	}
	return append(lines, v.ageLine(ctx))
}

// usageLine tells what the last turn used, and the conversation since its counters began; "" = nothing is
// known of either.
func (v view) usageLine() string {
	last, s := v.s.LastTurn, v.s
	switch {
	case last.In+last.Out > 0:
		line := fmt.Sprintf("🧮 Last turn: %d in / %d out", last.In, last.Out)
		if last.Priced {
			line += " · " + dollars(last.CostMicros)
		}
		return line + fmt.Sprintf(" · session: %d/%d", s.TokensIn, s.TokensOut)
	case s.TokensIn+s.TokensOut > 0:
		return fmt.Sprintf("🧮 Session: %d/%d", s.TokensIn, s.TokensOut)
	}
	return ""
}

// ageLine tells how old the conversation is, and when it began anew. Its key is not for everybody.
func (v view) ageLine(ctx context.Context) string {
	line := "🧵 Session: "
	if v.call.details() {
		line += code(v.s.Key) + " · "
	}
	begun, err := v.r.deps.Sessions.Begun(ctx, v.s.Key)
	if err != nil {
		v.missing(ctx, "age", err)
	}
	if begun.IsZero() {
		return line + "started " + v.when(v.s.StartedAt)
	}
	return line + fmt.Sprintf("started %s · last reset %s", v.when(begun), v.when(v.s.StartedAt))
}

func (v view) contextText() string {
	used, size := v.s.TokensContext, v.r.deps.Models.Info(v.sel.Ref).ContextWindow
	if size == 0 {
		return fmt.Sprintf("%d tokens", used)
	}
	return fmt.Sprintf("%d/%d (%d%%)", used, size, used*100/int64(size))
}

// settings are the choices of the conversation, and how many messages wait in it.
func (v view) settings(ctx context.Context, waiting int) string {
	think := v.s.Think
	if think == "" {
		think = wordDefault
	}
	q := v.r.deps.Queue().For(v.call.To.Channel, stored(v.s))
	line := fmt.Sprintf("⚙️ Think: %s · Queue: %s", think, q.Mode)
	if waiting > 0 {
		line += fmt.Sprintf(" (%d waiting)", waiting)
	}
	line += v.r.asCollect(v.call, q, v.sel.Ref)
	if v.s.Verbose != "" {
		line += " · Verbose: " + v.s.Verbose
	}
	if v.s.UsageMode != "" && v.s.UsageMode != usageOff {
		line += " · Usage: " + v.s.UsageMode
	}
	if v.r.deps.Speech == nil {
		return line
	}
	tts, err := v.r.deps.Speech.Status(ctx, v.call)
	if err != nil {
		v.missing(ctx, "speech", err)
		return line
	}
	line += " · TTS: " + tts.Auto
	if tts.Provider != "" {
		line += "/" + tts.Provider
	}
	return line
}

// missing notes why a line of the card is not there: the card itself must not fail with it.
func (v view) missing(ctx context.Context, what string, err error) {
	v.r.deps.Log.WarnContext(ctx, "status_incomplete", "part", what, "session", v.call.Key, "error", err.Error())
}

// timeLine tells what happens unasked; "" = nothing does.
func (v view) timeLine(ctx context.Context) string {
	var parts []string
	if v.r.deps.Cron != nil {
		on, next, err := v.r.deps.Cron.Summary(ctx)
		switch {
		case err != nil:
			v.missing(ctx, "cron", err)
		case on > 0:
			text := fmt.Sprintf("⏰ Cron: %d jobs", on)
			if on == 1 {
				text = "⏰ Cron: 1 job"
			}
			if len(next.Next) > 0 {
				text += fmt.Sprintf(", next %s in %s", clip(next.Name, maxQuote), span(max(0, next.Next[0].Sub(v.now))))
			}
			parts = append(parts, text)
		}
	}
	if v.r.deps.Heartbeat != nil {
		st, err := v.r.deps.Heartbeat.State(ctx, v.call.Agent)
		if err != nil {
			v.missing(ctx, "heartbeat", err)
		} else if st.Every > 0 {
			parts = append(parts, v.r.heartbeatText(v.call, st))
		}
	}
	return strings.Join(parts, " · ")
}
