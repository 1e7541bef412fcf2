package reply

import (
	"context"
	"errors"
	"slices"
	"time"

	"understudy/chat"
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
)

// Why a compaction gains nothing.
var (
	errNothingToCompact = errors.New("the conversation has no older part")
	errNoGain           = errors.New("the summary would hardly make the conversation shorter")
	errCompacted        = errors.New("the conversation was shortened in this turn already")
)

// compact replaces the older part of the conversation by a summary, at most once in a turn. On an
// error nothing has changed: a compaction that fails loses nothing.
func (t *turn) compact(ctx context.Context, ref llm.ModelRef) error {
	if t.summarised {
		return errCompacted
	}
	err := t.shorten(ctx, ref)
	if told := t.r.deps.Compacted; told != nil && !errors.Is(err, errNothingToCompact) {
		told(err)
	}
	return err
}

// shorten is compact, the first time.
func (t *turn) shorten(ctx context.Context, ref llm.ModelRef) error {
	cut := keepFrom(t.entries, t.cfg.Compaction.KeepRecentTokens)
	job := SummaryJob{
		Ref: ref, Model: t.cfg.Compaction.Model, Plan: t.plannedNow(), Focus: t.focus,
		Bytes: bytesOf(t.entries),
		Spent: func(by llm.ModelRef, u llm.Usage) { t.spend(by, session.PurposeSummary, u) },
	}
	if cut > firstTurn(t.entries) {
		job.Older = messagesOf(t.entries[:cut])
		t.tell(notices.CompactionStarted)
	}
	if len(job.Plan.Chain) == 0 {
		job.Plan = t.plan(t.sess)
	}
	summary, err := t.r.deps.Compact.Summarize(ctx, job)
	t.progress()
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

// tell sends a notice about compaction, where the operator or the user wants that.
func (t *turn) tell(text string) {
	if (t.cfg.Compaction.Notify || t.verbose()) && !t.req.internal() {
		t.out.Notify(t.outbound(chat.Notice, text))
	}
}

// forgetOlder shows this turn the newest part of the conversation only, what fits the model at most.
// The transcript stays as it is. It reports whether there was something to leave out.
func (t *turn) forgetOlder(ref llm.ModelRef) bool {
	most, known := t.limit(ref)
	if !known {
		most = estimate(t.request) / 2
	}
	n := len(session.TurnStarts(t.entries))
	for left := n; left > 0; {
		if left = min(left-1, left*3/4); left == 0 {
			t.entries = nil
		} else {
			t.entries = session.Tail(t.entries, left)
		}
		if t.request = t.prompt(); estimate(t.request) <= most {
			break
		}
	}
	return n > 0
}

// keepFrom returns the index of the first entry that stays as it is: the newest keep tokens, in
// whole turns, and at least the last keepRecentTurns turns. It is always the beginning of a turn, so
// no tool call is parted from its result. Without an older part it is that of the first entry.
func keepFrom(entries []session.Entry, keep int) int {
	starts := session.TurnStarts(entries)
	end, size := len(entries), 0
	cut, recent := firstTurn(entries), firstTurn(entries)
	for n, i := range slices.Backward(starts) {
		for _, e := range entries[i:end] {
			size += weight(e.Message)
		}
		turns := len(starts) - n
		if turns > keepRecentTurns && size/bytesPerToken > keep {
			return cut
		}
		if turns == keepRecentTurns {
			recent = i
		}
		cut, end = i, i
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
	t.bill(ctx)
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
