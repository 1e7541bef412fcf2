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

// compact replaces the older part of the conversation by a summary, at most once in a turn. On an
// error nothing has changed: a compaction that fails loses nothing.
func (t *turn) compact(ctx context.Context, ref llm.ModelRef) error {
	if t.summarised {
		return errCompacted
	}
	cut := keepFrom(t.entries, t.cfg.Compaction.KeepRecentTokens)
	job := SummaryJob{
		Ref: ref, Model: t.cfg.Compaction.Model, Plan: t.plannedNow(), Focus: t.focus,
		Bytes: bytesOf(t.entries),
	}
	if cut > firstTurn(t.entries) {
		job.Older = messagesOf(t.entries[:cut])
		t.tell(notices.CompactionStarted)
	}
	if len(job.Plan.Chain) == 0 {
		job.Plan = t.plan(t.sess)
	}
	summary, err := t.r.deps.Compact.Summarize(ctx, job)
	if err != nil {
		t.log.WarnContext(ctx, "compaction_failed", "error", err.Error())
		return err
	}
	entry := session.Entry{
		Kind: session.KindCompaction, Message: llm.Text(llm.RoleUser, summary), At: t.r.deps.Clock.Now(),
		TokensBefore: job.Bytes / bytesPerToken,
	}
	if cut < len(t.entries) {
		entry.FirstKept = t.entries[cut].Seq
	}
	s, err := t.r.deps.Sessions.Compact(context.WithoutCancel(ctx), t.req.Key, t.sess.ID, entry)
	if err != nil {
		t.log.ErrorContext(ctx, "compaction_failed", "error", err.Error())
		return err
	}
	t.sess.Compactions = s.Compactions
	t.entries = append([]session.Entry{entry}, t.entries[cut:]...)
	t.summarised = true
	t.tell(notices.CompactionDone)
	t.log.InfoContext(ctx, "compaction_done", "entries", cut, "bytes_before", job.Bytes, "bytes_after", bytesOf(t.entries))
	return nil
}

// messagesOf returns what of the entries models are shown.
func messagesOf(entries []session.Entry) []llm.Message {
	var ms []llm.Message
	for _, e := range entries {
		if e.Kind != session.KindNote {
			ms = append(ms, e.Message)
		}
	}
	return ms
}

func bytesOf(entries []session.Entry) (n int) {
	for _, m := range messagesOf(entries) {
		n += weight(m)
	}
	return n
}

// tell sends a notice about compaction, where the operator wants that.
func (t *turn) tell(text string) {
	if t.cfg.Compaction.Notify && !t.req.internal() {
		t.out.Notify(t.outbound(chat.Notice, text))
	}
}

// keepFrom returns the index of the first entry that stays as it is: the newest keep tokens, in
// whole turns, and at least the last keepRecentTurns turns. It is always the beginning of a turn, so
// no tool call is parted from its result. Without an older part it is that of the first entry.
func keepFrom(entries []session.Entry, keep int) int {
	size, turns := 0, 0
	cut, recent := firstTurn(entries), firstTurn(entries)
	for i := len(entries) - 1; i >= firstTurn(entries); i-- {
		size += weight(entries[i].Message)
		if entries[i].Kind != session.KindMessage || entries[i].Message.Role != llm.RoleUser {
			continue
		}
		turns++
		if turns > keepRecentTurns && size/bytesPerToken > keep {
			return cut
		}
		if turns == keepRecentTurns {
			recent = i
		}
		cut = i
	}
	// Everything is recent: an overflow still has to gain something, so only the last turns stay.
	return recent
}

// firstTurn is the index behind an earlier summary.
func firstTurn(entries []session.Entry) int {
	if len(entries) > 0 && entries[0].Kind == session.KindCompaction {
		return 1
	}
	return 0
}

// Why a compaction gains nothing.
var (
	errNothingToCompact = errors.New("the conversation has no older part")
	errNoGain           = errors.New("the summary would hardly make the conversation shorter")
	errCompacted        = errors.New("the conversation was shortened in this turn already")
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
		Messages: []llm.Message{llm.Text(llm.RoleUser, transcriptText(job.Older, job.Focus, s.room(chain[0])))},
	})
	if err != nil {
		return "", fmt.Errorf("summarise: %w", err)
	}
	summary := strings.TrimSpace(a.Message.PlainText())
	saved := -len(summary)
	for _, m := range job.Older {
		saved += weight(m)
	}
	if saved*10 < job.Bytes { // less than a tenth of the conversation
		return "", errNoGain
	}
	return summary, nil
}

// room is how many bytes of conversation a model can be given to summarise.
func (s modelSummarizer) room(ref llm.ModelRef) int {
	info := s.r.deps.Models().Info(ref)
	if !info.Known || info.ContextWindow <= 0 {
		return maxSummaryInput
	}
	return min(maxSummaryInput, info.ContextWindow*bytesPerToken*3/4)
}

// transcriptText writes a conversation as plain text. Of one that is longer than most bytes the
// middle is left out: the beginning holds the earlier summary, the end what is going on.
func transcriptText(ms []llm.Message, focus string, most int) string {
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
	if len(s) > most {
		head := most / 4
		s = strings.ToValidUTF8(s[:head], "") + "\n[a part is left out]\n" + strings.ToValidUTF8(s[len(s)-(most-head):], "")
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
// after: the same when nothing can be gained. On an error nothing has changed. It must run in the
// session's lane.
func (r *Runner) Compact(ctx context.Context, q Request, focus string) (before, after int, err error) {
	q.Kind = Cron // nobody wrote: the interaction time stays
	t := r.begin(q)
	t.out, t.focus = quiet{}, focus
	if err := t.open(ctx); err != nil {
		return 0, 0, err
	}
	before = bytesOf(t.entries) / bytesPerToken
	err = t.compact(ctx, t.plan(t.sess).Chain[0])
	if errors.Is(err, errNothingToCompact) || errors.Is(err, errNoGain) {
		return before, before, nil
	}
	return before, bytesOf(t.entries) / bytesPerToken, err
}

// quiet is the delivery of work that says nothing itself.
type quiet struct{}

func (quiet) Stream(string)                               {}
func (quiet) Committed() bool                             { return false }
func (quiet) Restart()                                    {}
func (quiet) Notify(chat.Outbound)                        {}
func (quiet) Finish(context.Context, chat.Outbound) error { return nil }
func (quiet) Cancel()                                     {}
