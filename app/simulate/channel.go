package simulate

import (
	"context"
	"sync"

	"understudy/chat"
	"understudy/failover"
	"understudy/reply"
	"understudy/session"
)

// said is how the timeline shows what makes a turn or a command.
func said(e event, text string) string {
	switch {
	case e.kind == eventCron:
		return "task: " + text
	case e.kind == eventHeartbeat:
		return "heartbeat"
	case e.image:
		return "user: " + text + " (with a picture)"
	}
	return "user: " + text
}

// stand is a turn's place in the drill's channel: it does not stream, and what is said stands in
// the trace.
type stand struct {
	trace *trace
	ref   failover.Ref
}

func (*stand) Stream(string)   {}
func (*stand) Committed() bool { return false }
func (*stand) Restart()        {}

// Notify implements reply.Delivery.
func (d *stand) Notify(o chat.Outbound) { d.trace.notice(d.ref, o.Markdown) }

// Finish implements reply.Delivery; the trace learns the text from the turn's outcome.
func (*stand) Finish(context.Context, chat.Outbound) error { return nil }
func (*stand) Cancel()                                     {}

// maxKept is how many messages of a conversation a drill remembers. Nobody reads them, and a day of
// messages would otherwise cost more time than everything else.
const maxKept = 200

// memory is the session store, but its conversations stop growing.
type memory struct {
	*session.Store
	mu   sync.Mutex
	kept map[string]int // by session id
}

// FinishTurn implements reply.Sessions.
func (m *memory) FinishTurn(ctx context.Context, key string, t session.Turn) error {
	m.mu.Lock()
	if m.kept[t.SessionID] += len(t.Entries); m.kept[t.SessionID] > maxKept {
		t.Entries = nil
	}
	m.mu.Unlock()
	return m.Store.FinishTurn(ctx, key, t)
}

// alwaysCompletes is the drill's compaction.
type alwaysCompletes struct{}

// Summarize implements reply.Summarizer.
func (alwaysCompletes) Summarize(context.Context, reply.SummaryJob) (string, error) {
	return "(summary)", nil
}
