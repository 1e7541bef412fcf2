package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"understudy/channels"
)

// marks returns how far the conversations have been seen. It is asked for before anything new is accepted:
// a message that comes now would move the mark of its conversation past the gap.
func (s *supervisor) marks(ctx context.Context) []channels.Mark {
	if s.deps.Seen == nil {
		return nil
	}
	marks, err := s.deps.Seen.Marks(ctx, time.Now().Add(-channels.RecentFor), channels.MostMarks)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("cannot catch up", "error", err)
	}
	return marks
}

// looks are the looks for what was missed: one is under way at most, and one waits.
type looks struct {
	mu   sync.Mutex
	busy bool
	next []channels.Mark
}

// begin reports whether the caller is to look now. Else the marks wait, unless earlier ones do, behind
// which theirs are included.
func (l *looks) begin(marks []channels.Mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		if l.next == nil {
			l.next = marks
		}
		return false
	}
	l.busy = true
	return true
}

// end returns the marks that waited, nil = none: then nobody looks any more.
func (l *looks) end() []channels.Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	marks := l.next
	l.next, l.busy = nil, marks != nil
	return marks
}

// catchUp looks, besides everything else, for what was said since the marks.
func (s *supervisor) catchUp(ctx context.Context, marks []channels.Mark) {
	if len(marks) == 0 || !s.looks.begin(marks) {
		return
	}
	in := s.inbox.Load()
	s.tasks.Go(func() {
		for ; marks != nil; marks = s.looks.end() {
			l := look{b: in, begun: time.Now(), left: marks}
			l.run(ctx)
			if ctx.Err() != nil {
				return
			}
			s.lookedAt.Ended(l.sum, s.log)
		}
	})
}

// LastLook implements channels.Looker.
func (b *Bot) LastLook() (channels.Look, bool) { return b.lookedAt.Last() }

const (
	// lookEvery is the pace of looking behind the latest conversations, below the 50 calls a minute that
	// Slack allows an ordinary app: threads are read for people, too.
	lookEvery = 1500 * time.Millisecond
	// mostTries is how often one conversation is tried.
	mostTries = 4
)

// look is one look for what was missed.
type look struct {
	b     *inbox
	begun time.Time
	left  []channels.Mark
	tries int // of the first one that is left
	sum   channels.Look
}

// run gives the sink what was said since the marks, conversation by conversation and the oldest first. It
// ends with a rate limit among the latest ones: apps that Slack limits to one such call a minute would need
// half an hour for these alone.
func (l *look) run(ctx context.Context) {
	for len(l.left) > 0 && ctx.Err() == nil {
		m := l.left[0]
		if l.sum.Looked+l.sum.Left >= channels.MostConversations {
			sleep(ctx, lookEvery)
		}
		more, err := l.into(ctx, m)
		l.tries++
		var e *callError
		refused := errors.As(err, &e) && e.code != ""
		limited := refused && e.code == codeRateLimited
		switch {
		case err == nil:
			l.sum.Looked++
		case limited && (l.sum.Looked < channels.MostConversations || l.tries == mostTries):
			l.sum.Left += len(l.left)
			l.sum.Why = err.Error()
			return
		case refused && !limited: // there is nothing to be seen for the bot
			l.b.log.Info("conversation not caught up", "conversation", m.Address.Conversation, "error", err)
		case l.tries < mostTries:
			if e != nil {
				sleep(ctx, e.retryAfter)
			}
			sleep(ctx, lookEvery)
			continue
		default:
			l.sum.Left++
			l.sum.Why = err.Error()
		}
		l.left, l.tries = append(more, l.left[1:]...), 0
	}
}

// largestPage is how many messages Slack gives at once.
const largestPage = 999

// into looks into one conversation. It returns the threads that were opened there in the gap and have
// replies: these stand in no history but their own.
func (l *look) into(ctx context.Context, m channels.Mark) (threads []channels.Mark, err error) {
	b := l.b
	oldest := stamp(b.skew.There(l.begun).Add(-b.reach(m)))
	if later(m.LastID, oldest) {
		oldest = m.LastID
	}
	most := min(b.cfg.CatchUp.MaxMessages, largestPage)
	params := url.Values{
		"channel": {m.Address.Conversation}, "oldest": {oldest}, "inclusive": {"0"}, "limit": {strconv.Itoa(most)},
	}
	method := "conversations.history"
	if m.Address.Thread != "" {
		method = "conversations.replies"
		params.Set("ts", m.Address.Thread)
	}
	var page struct {
		Messages json.RawMessage `json:"messages"`
	}
	if err := b.api.raw(ctx, method, params, &page); err != nil {
		return nil, err
	}
	missed := slices.DeleteFunc(each[event](page.Messages), func(e event) bool { return !later(e.TS, oldest) })
	slices.SortFunc(missed, func(x, y event) int { return compareTS(x.TS, y.TS) })
	fresh := stamp(b.skew.There(l.begun).Add(-b.cfg.CatchUp.MaxAge))
	for _, e := range missed[max(0, len(missed)-most):] {
		e.Type, e.Channel, e.ChannelType = "message", m.Address.Conversation, typeOf(m.Address.Kind)
		if m.Address.Thread == "" && e.Replies > 0 && later(e.TS, fresh) {
			thread := m
			thread.Address.Thread, thread.LastID = e.TS, e.TS
			threads = append(threads, thread)
		}
		in, _, ok := b.inbound(e, outer{Team: m.Space})
		if !ok {
			continue
		}
		in.CatchUp = true
		if err := b.accept(ctx, in); err != nil {
			return nil, err
		}
		l.sum.Found++
	}
	return threads, nil
}

// reach is how far back a conversation is looked into. What is too old to be answered is passed on too, so
// that somebody hears of it, but in a thread: there Slack gives the oldest messages first, and these must
// not stand in the way of those that are to be answered.
func (b *inbox) reach(m channels.Mark) time.Duration {
	if m.Address.Thread != "" {
		return b.cfg.CatchUp.MaxAge
	}
	return channels.RecentFor
}

// later reports whether one timestamp is after another; "" is before all.
func later(a, b string) bool { return compareTS(a, b) > 0 }

// compareTS orders timestamps.
func compareTS(a, b string) int { return cmp.Compare(moment(a).UnixMicro(), moment(b).UnixMicro()) }
