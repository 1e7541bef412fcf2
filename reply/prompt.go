package reply

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/chat"
	"understudy/llm"
	"understudy/session"
)

// Sizes, roughly.
const (
	imageTokens   = 1_600 // what one picture costs
	bytesPerToken = 4     // of text; errs on the safe side for most languages
)

// groupNote is said in groups only (spec/chat.md §1.7).
const groupNote = "You are in a group conversation. Each message begins with a line in brackets that says who wrote it and when. If you have nothing useful to add, answer with exactly NO_REPLY."

// summaryLabel stands above the summary of a shortened conversation.
const summaryLabel = "[Summary of the conversation so far]\n"

// prompt builds the request of the turn's next step. Its beginning is the same for every turn of a
// session, so that provider caches stay warm; the clock is not part of it.
func (t *turn) prompt() llm.Request {
	return llm.Request{
		System: t.system(), Tools: t.toolSpecs(), CacheKey: t.sess.ID, Thinking: t.think(),
		Messages: t.messages(),
	}
}

// messages is the conversation as the model is shown it.
func (t *turn) messages() []llm.Message {
	var list []llm.Message
	for _, e := range pruned(t.tight, t.entries, t.fresh) {
		if e.Kind == session.KindCompaction {
			e.Message = llm.Text(llm.RoleUser, summaryLabel+e.Message.PlainText())
		}
		list = append(list, e.Message)
	}
	return list
}

// system builds the system prompt. It holds nothing that changes within a session but the date, so a
// turn of another kind in the same conversation begins with the same words.
func (t *turn) system() string {
	parts := []string{strings.TrimSpace(t.cfg.System)}
	for _, f := range t.operatorFiles() {
		parts = append(parts, section(f))
	}
	kind := t.req.To.Kind
	if t.req.guest() {
		kind = t.sess.Address.Kind
	}
	if kind != chat.Direct && kind != "" && (!t.req.internal() || t.req.guest()) {
		parts = append(parts, groupNote)
	}
	if t.aloud.Tagged {
		parts = append(parts, speechNote)
	}
	now := t.local(t.began)
	parts = append(parts, fmt.Sprintf("Today is %s (%s).", now.Format("Monday 2 January 2006"), zoneName(now)))
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}

// operatorFiles are the operator's files that the turn takes along.
func (t *turn) operatorFiles() []File {
	if t.req.Light {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.cfg.Files), func(f File) bool { return strings.TrimSpace(f.Text) == "" })
}

// section is a file as a part of the system prompt.
func section(f File) string { return "# " + oneLine(f.Name) + "\n\n" + strings.TrimSpace(f.Text) }

// local is a moment in the agent's time zone.
func (t *turn) local(at time.Time) time.Time {
	if t.cfg.Zone == nil {
		return at
	}
	return at.In(t.cfg.Zone)
}

// zoneName names the zone of a moment. The host's zone has no name of its own: its present
// abbreviation stands for it.
func zoneName(at time.Time) string {
	if name := at.Location().String(); name != "Local" {
		return name
	}
	name, _ := at.Zone()
	return name
}

// estimate guesses the size of a request in tokens.
func estimate(q llm.Request) int {
	n := len(q.System) + toolWeight(q.Tools)
	for _, m := range q.Messages {
		n += weight(m)
	}
	return n / bytesPerToken
}

func toolWeight(tools []llm.Tool) (n int) {
	for _, tool := range tools {
		n += len(tool.Name) + len(tool.Description) + len(tool.Schema)
	}
	return n
}

// weight is the size of a message in bytes of text, pictures counted as what they cost.
func weight(m llm.Message) (n int) {
	for _, p := range m.Parts {
		switch {
		case p.Image != nil:
			n += imageTokens * bytesPerToken
		case p.ToolCall != nil:
			n += len(p.ToolCall.Name) + len(p.ToolCall.Input)
		case p.ToolResult != nil:
			n += len(p.ToolResult.Text)
		case p.Reasoning != nil:
			n += max(len(p.Reasoning.Text), len(p.Reasoning.Opaque))
		default:
			n += len(p.Text)
		}
	}
	return n
}

// limit is how large a prompt for a model may be; ok is false when that is not known. A small window
// gives up a quarter of itself for the answer, not the whole reserve.
func (t *turn) limit(ref llm.ModelRef) (tokens int, ok bool) {
	info := t.r.deps.Models().Info(ref)
	if !info.Known || info.ContextWindow <= 0 {
		return 0, false
	}
	return info.ContextWindow - min(t.cfg.Compaction.ReserveTokens, info.ContextWindow/4), true
}

// tooLong reports whether the prompt will hardly fit a model.
func (t *turn) tooLong(ref llm.ModelRef) bool {
	most, ok := t.limit(ref)
	return ok && estimate(t.request) > most
}
