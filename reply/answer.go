package reply

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"understudy/chat"
	"understudy/failover"
	"understudy/llm"
)

// answered remembers and delivers an answer. What the model said on the way to its tools belongs to
// it, but whether anything is said at all is decided by its last word.
func (t *turn) answered(ctx context.Context, a failover.Answer) (Outcome, error) {
	ctx = context.WithoutCancel(ctx) // an answer is not lost to a stop that came too late
	o := t.outcome(Answered)
	o.Model, o.Offer = a.Served, t.offer
	say := t.compose(a)
	if o.Text = say.Markdown; t.isSilent(say) {
		o.Status, o.Text = Silent, ""
	}
	if !t.req.internal() {
		t.r.errors.well(t.req.To)
	}
	if notice := t.settle(ctx, o, a); notice != "" {
		t.out.Notify(t.outbound(chat.Notice, notice))
	}
	t.log.InfoContext(ctx, "turn_answered", "status", o.Status.String(), "model", a.Served.String(), "profile", string(a.Profile),
		"seconds", t.r.deps.Clock.Since(t.began).Seconds(), "input_tokens", t.usage.Input, "output_tokens", t.usage.Output,
		"cache_read_tokens", t.usage.CacheRead, "cache_write_tokens", t.usage.CacheWrite)
	if o.Status == Silent {
		t.out.Cancel()
		return o, nil
	}
	if say.Markdown != "" {
		say.Markdown = t.prefix(a.Served) + say.Markdown + t.footer(o)
	}
	if err := t.out.Finish(ctx, say); err != nil {
		return o, fmt.Errorf("deliver the answer: %w", err)
	}
	return o, nil
}

// compose makes the thing to say of what the model said. Neither prefix nor footer is in it: they are
// not the model's words, so they are not spoken and not remembered.
func (t *turn) compose(a failover.Answer) chat.Outbound {
	say := t.outbound(t.req.class(), "")
	say.Media = t.files.take()
	last, nothing := t.withoutOK(t.r.deps.Clean(a.Message.PlainText()))
	text, neither := t.withoutOK(t.r.deps.Clean(t.visible()))
	if text == "" || nothing || neither || t.r.deps.IsSilent(last) {
		return say
	}
	say.Markdown = text
	if speak := t.r.deps.Speak; speak != nil {
		q := t.speechRequest()
		q.Class, q.Text = say.Class, text
		p := speak(q)
		say.Markdown, say.Speech = strings.TrimSpace(p.Visible), p.Speech
		if say.Markdown == "" && say.Speech != nil {
			say.Markdown = say.Speech.Text // should the sound fail, nothing would be left
		}
		if p.AsVoice {
			say.Media = chat.AsVoice(say.Media)
		}
	}
	return say
}

// isSilent reports whether nothing is to be said: files are sent even without words.
func (t *turn) isSilent(say chat.Outbound) bool { return say.Markdown == "" && len(say.Media) == 0 }

// The token of a turn with nothing to report, at either end of a text (spec/chat.md §6.3).
var (
	okFirst = regexp.MustCompile("^\\s*[*_`]{0,3}HEARTBEAT_OK\\b[*_`]{0,3}[.,:;!]?(?:\\s+[—–-]+)?(?:\\s+|$)")
	okLast  = regexp.MustCompile("(?:^|\\s)[*_`]{0,3}HEARTBEAT_OK[*_`]{0,3}[.!]?\\s*$")
)

// maxOKRest is how many characters beside the token still count as nothing to report.
const maxOKRest = 300

// withoutOK takes the token off the ends of a text. dropped tells that the rest is not worth saying: in
// a heartbeat a few words, elsewhere nothing at all.
func (t *turn) withoutOK(text string) (rest string, dropped bool) {
	rest = okLast.ReplaceAllString(okFirst.ReplaceAllString(text, ""), "")
	found := rest != text
	rest = strings.TrimSpace(rest)
	if !found {
		return rest, false
	}
	return rest, rest == "" || t.req.Kind == Heartbeat && len([]rune(rest)) <= maxOKRest
}

// visible joins what the model said in this turn.
func (t *turn) visible() string {
	var parts []string
	for _, e := range t.fresh {
		if e.Message.Role != llm.RoleAssistant {
			continue
		}
		if s := strings.TrimSpace(e.Message.PlainText()); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n\n")
}

// prefix is what stands before an answer (spec/chat.md §2.1).
func (t *turn) prefix(by llm.ModelRef) string {
	p := t.cfg.ResponsePrefix
	if p == "auto" {
		if p = ""; t.cfg.Name != "" {
			p = "[" + t.cfg.Name + "]"
		}
	}
	if p == "" {
		return ""
	}
	level := t.think()
	if level == "" {
		level = "off"
	}
	_, model, ok := cutLast(by.Model, "/")
	if !ok {
		model = by.Model
	}
	return strings.NewReplacer("{model}", model, "{modelFull}", by.String(), "{provider}", by.Provider, "{thinkingLevel}", level).Replace(p) + " "
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// The modes of the footer (/usage).
const (
	usageTokens = "tokens"
	usageFull   = "full"
)

// footer tells what a turn used, where somebody wants to know (spec/chat.md §3.3).
func (t *turn) footer(o Outcome) string {
	mode := t.sess.UsageMode
	if t.req.internal() || mode != usageTokens && mode != usageFull {
		return ""
	}
	s := fmt.Sprintf("\n\nUsage: %d in / %d out", o.Usage.Input+o.Usage.CacheRead+o.Usage.CacheWrite, o.Usage.Output)
	if mode == usageTokens {
		return s
	}
	if o.Usage.CacheRead > 0 {
		s += fmt.Sprintf(" · %d cached", o.Usage.CacheRead)
	}
	if o.CostUSD != nil {
		s += " · " + dollars(*o.CostUSD)
	}
	return s + " · " + o.Model.String()
}

// dollars writes a price; what is not nothing never looks like it.
func dollars(usd float64) string {
	if usd > 0 && usd < 0.0001 {
		return "<$0.0001"
	}
	return fmt.Sprintf("$%.4f", usd)
}
