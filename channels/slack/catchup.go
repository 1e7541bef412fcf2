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
	marks, err := s.deps.Seen.Marks(ctx, time.Now().Add(-channels.RecentFor), channels.MostConversations)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("cannot catch up", "error", err)
	}
	return marks[:min(len(marks), channels.MostConversations)]
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
			if err := in.catchUp(ctx, marks); err != nil && ctx.Err() == nil {
				s.log.Warn("catching up ended early", "error", err)
			}
		}
	})
}

// catchUp gives the sink what was said since the marks, conversation by conversation and the oldest
// first. It ends with the first rate limit: apps that Slack limits to one such call a minute would
// wait for half an hour.
func (b *inbox) catchUp(ctx context.Context, marks []channels.Mark) error {
	now := time.Now()
	var errs []error
	for _, m := range marks {
		err := b.catchUpOne(ctx, m, now)
		var e *callError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &e) && e.code == codeRateLimited:
			return errors.Join(append(errs, err)...)
		case err != nil:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// largestPage is how many messages Slack gives at once.
const largestPage = 999

func (b *inbox) catchUpOne(ctx context.Context, m channels.Mark, now time.Time) error {
	oldest := stamp(now.Add(-b.cfg.CatchUp.MaxAge))
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
		return err
	}
	missed := slices.DeleteFunc(each[event](page.Messages), func(e event) bool { return !later(e.TS, oldest) })
	slices.SortFunc(missed, func(x, y event) int { return compareTS(x.TS, y.TS) })
	for _, e := range missed[max(0, len(missed)-most):] {
		e.Type, e.Channel, e.ChannelType = "message", m.Address.Conversation, typeOf(m.Address.Kind)
		in, _, ok := b.inbound(e, outer{Team: m.Space})
		if !ok {
			continue
		}
		in.CatchUp = true
		if err := b.accept(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// later reports whether one timestamp is after another; "" is before all.
func later(a, b string) bool { return compareTS(a, b) > 0 }

// compareTS orders timestamps.
func compareTS(a, b string) int { return cmp.Compare(moment(a).UnixMicro(), moment(b).UnixMicro()) }
