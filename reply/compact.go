package reply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"understudy/chat"
	"understudy/failover"
	"understudy/llm"
	"understudy/notices"
	"understudy/session"
)

// Numbers of compaction (spec/chat.md §1.8).
const (
	defaultReserveTokens    = 16_384 // kept free for the answer
	defaultKeepRecentTokens = 20_000
	keepRecentTurns         = 3
	compactionTimeout       = 180 * time.Second
	maxSummaryInput         = 400_000 // bytes of conversation given to the summarising model
)

const summaryPrompt = `You compress a conversation so that it can go on with less text. Write a summary of the conversation below for the assistant who will continue it: what the user wants, what was decided, facts, names, numbers, open questions. Keep identifiers, file names, links and code exactly as they are. Do not answer anything and do not add anything. Write in the language of the conversation.`

// compact replaces the older part of the conversation by a summary. It reports whether anything
// was gained; a compaction that fails loses nothing.
func (t *turn) compact(ctx context.Context, ref llm.ModelRef) bool {
	if t.summarised {
		return false
	}
	cut := keepFrom(t.entries, t.cfg.Compaction.KeepRecentTokens)
	older := make([]llm.Message, 0, cut)
	before := 0
	for _, e := range t.entries[:cut] {
		older = append(older, e.Message)
		for _, p := range e.Message.Parts {
			before += sizeOf(p)
		}
	}
	job := SummaryJob{Ref: ref, Plan: t.plannedNow(), Older: older, Focus: t.focus}
	if len(job.Plan.Chain) == 0 {
		job.Plan = t.plan(t.sess)
	}
	job.Model = t.cfg.Compaction.Model
	t.tell(notices.CompactionStarted)
	summary, err := t.r.deps.Compact.Summarize(ctx, job)
	if err != nil {
		t.log.WarnContext(ctx, "compaction_failed", "error", err.Error())
		return false
	}
	entry := session.Entry{
		Kind: session.KindCompaction, Message: llm.Text(llm.RoleUser, summary), At: t.r.deps.Clock.Now(),
		TokensBefore: before / bytesPerToken,
	}
	switch n := len(t.entries); {
	case cut < n:
		entry.FirstKept = t.entries[cut].Seq
	case n > 0:
		entry.FirstKept = t.entries[n-1].Seq + 1
	}
	s, err := t.r.deps.Sessions.Compact(context.WithoutCancel(ctx), t.req.Key, t.sess.ID, entry)
	if err != nil {
		t.log.ErrorContext(ctx, "compaction_failed", "error", err.Error())
		return false
	}
	t.sess.Compactions = s.Compactions
	t.entries = append([]session.Entry{entry}, t.entries[cut:]...)
	t.summarised = true
	t.tell(notices.CompactionDone)
	t.log.InfoContext(ctx, "compaction_done", "messages", cut, "bytes_before", before, "bytes_after", len(summary))
	return true
}

// tell sends a notice about compaction, where the operator wants that.
func (t *turn) tell(text string) {
	if t.cfg.Compaction.Notify && !t.req.internal() {
		t.out.Notify(t.outbound(chat.Notice, text))
	}
}

// keepFrom returns the index of the first entry that stays as it is: the newest keep tokens
// and at least the last keepRecentTurns turns, never parting a tool call from its result.
func keepFrom(entries []session.Entry, keep int) int {
	size, turns := 0, 0
	for i := len(entries) - 1; i >= 0; i-- {
		for _, p := range entries[i].Message.Parts {
			size += sizeOf(p)
		}
		if entries[i].Kind != session.KindMessage || entries[i].Message.Role != llm.RoleUser {
			continue
		}
		turns++
		if turns >= keepRecentTurns && size/bytesPerToken > keep {
			return i
		}
	}
	// Everything is recent: an overflow still has to gain something, so only the last turns stay.
	turns = 0
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Message.Role == llm.RoleUser && entries[i].Kind == session.KindMessage {
			if turns++; turns == keepRecentTurns {
				return i
			}
		}
	}
	return 0
}

// Why a compaction gains nothing.
var (
	errNothingToCompact = errors.New("the conversation has no older part")
	errNoGain           = errors.New("the summary is hardly shorter than what it stands for")
)

// modelSummarizer asks the model whose context overflowed, and on a failure the rest of the
// session's chain; the choice is never written back.
type modelSummarizer struct{ r *Runner }

// Summarize implements Summarizer.
func (s modelSummarizer) Summarize(ctx context.Context, job SummaryJob) (string, error) {
	if len(job.Older) == 0 {
		return "", errNothingToCompact
	}
	ctx, cancel := s.r.deps.Clock.WithTimeout(ctx, compactionTimeout, llm.ErrTurnTimeout)
	defer cancel()
	plan := job.Plan
	plan.Selected, plan.Images, plan.Tokens, plan.Quiet = job.Ref, false, 0, true
	plan.Deadline = s.r.deps.Clock.Now().Add(compactionTimeout)
	chain := []llm.ModelRef{job.Ref}
	if !job.Model.IsZero() { // a model chosen for it is used exactly
		chain, plan.Chain, plan.Selected = []llm.ModelRef{job.Model}, nil, job.Model
	}
	for _, ref := range plan.Chain {
		if ref != job.Ref {
			chain = append(chain, ref)
		}
	}
	plan.Chain = chain
	run := s.r.deps.Failover.Begin(ctx, plan, deaf{})
	defer run.Finish()
	a, err := run.Ask(ctx, llm.Request{
		System: summaryPrompt, Thinking: "low",
		Messages: []llm.Message{llm.Text(llm.RoleUser, transcriptText(job.Older, job.Focus))},
	})
	if err != nil {
		return "", fmt.Errorf("summarise: %w", err)
	}
	summary := strings.TrimSpace(a.Message.PlainText())
	before := 0
	for _, m := range job.Older {
		for _, p := range m.Parts {
			before += sizeOf(p)
		}
	}
	if len(summary)*10 > before*9 {
		return "", errNoGain
	}
	return summary, nil
}

// transcriptText writes a conversation as plain text, the newest part when it is too long.
func transcriptText(ms []llm.Message, focus string) string {
	var b strings.Builder
	for _, m := range ms {
		for _, p := range m.Parts {
			switch {
			case p.ToolCall != nil:
				fmt.Fprintf(&b, "assistant called %s with %s\n", p.ToolCall.Name, p.ToolCall.Input)
			case p.ToolResult != nil:
				fmt.Fprintf(&b, "result: %s\n", p.ToolResult.Text)
			case p.Image != nil:
				fmt.Fprintf(&b, "%s sent an image\n", m.Role)
			case p.Text != "":
				fmt.Fprintf(&b, "%s: %s\n", m.Role, p.Text)
			}
		}
	}
	s := b.String()
	if len(s) > maxSummaryInput {
		s = "[the oldest part is left out]\n" + strings.ToValidUTF8(s[len(s)-maxSummaryInput:], "")
	}
	if focus != "" {
		s += "\nPay special attention to: " + focus
	}
	return s
}

// deaf is the host of a request nobody watches.
type deaf struct{}

func (deaf) Text(string) bool { return false }
func (deaf) Forget()          {}
func (deaf) StillRetrying()   {}
func (deaf) Compact(context.Context, llm.ModelRef) ([]llm.Message, bool) {
	return nil, false
}

func (deaf) Switched(context.Context) (failover.Plan, bool) { return failover.Plan{}, false }

// Compact shortens a conversation at its user's wish and returns its size in tokens before and
// after. It must run in the session's lane.
func (r *Runner) Compact(ctx context.Context, q Request, focus string) (before, after int, err error) {
	t := &turn{r: r, req: q, cfg: r.deps.Agent(q.Agent), began: r.deps.Clock.Now(), out: quiet{}}
	t.cfg.Compaction = t.cfg.Compaction.withDefaults()
	t.log = r.deps.Log.With("agent", q.Agent, "session", q.Key)
	t.req.Kind = Cron // nobody wrote: the interaction time stays
	if err := t.open(ctx); err != nil {
		return 0, 0, err
	}
	t.req.Kind = Message
	before = estimate(t.prompt())
	if len(t.entries) == 0 || keepFrom(t.entries, t.cfg.Compaction.KeepRecentTokens) == 0 {
		return before, before, nil
	}
	t.focus = focus
	if !t.compact(ctx, t.plan(t.sess).Selected) {
		return before, before, nil
	}
	return before, estimate(t.prompt()), nil
}

// quiet is the delivery of work that says nothing itself.
type quiet struct{}

func (quiet) Stream(string)                               {}
func (quiet) Committed() bool                             { return false }
func (quiet) Restart()                                    {}
func (quiet) Notify(chat.Outbound)                        {}
func (quiet) Finish(context.Context, chat.Outbound) error { return nil }
func (quiet) Cancel()                                     {}
