package reply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy/chat"
	"understudy/llm"
)

// Tool is a function that a model may call during a turn. Calling it is observable work: failover
// never repeats a call (spec/failover.md §8.1).
type Tool struct {
	llm.Tool
	// Source is the server that the tool belongs to; "" = built in. What a server returns is a
	// stranger's text.
	Source string
	// Approve asks a person before every call (Deps.Approve).
	Approve bool
	// Timeout bounds one call, the question for approval not included; 0 = 60 s.
	Timeout time.Duration
	// Run does the work. Its result goes to the model; an error becomes an error result and the
	// turn goes on. It must return soon after ctx ends: nobody waits for it then.
	Run func(ctx context.Context, call Call) (string, error)

	offers bool // it is offer_reminder, which runs nothing
}

// Call is one invocation of a Tool.
type Call struct {
	Session string // key of the session the turn belongs to
	Agent   string
	Turn    string
	Kind    Kind // of the turn: whoever is not asked by somebody has nobody's rights
	To      chat.Address
	// Sender wrote the message that began the turn; zero in internal turns. Others may have written since,
	// and the model follows whoever it reads: it says nothing of what the call may do.
	Sender chat.Sender
	Input  json.RawMessage // a JSON object
	// Notify tells people in the turn's place in a line of its own that the call changed something for them:
	// a notice, which is no part of the answer (spec/chat.md §2.3). In internal turns nobody is told.
	Notify func(text string)
	// Attach puts a file beside the turn's answer. It is sent even if the answer has no words. An error
	// says that there is no room for it.
	Attach func(chat.Attachment) error
}

// Approval is a call that a person has to agree to.
type Approval struct {
	Key    string // session
	Agent  string
	Turn   string
	To     chat.Address
	Sender chat.Sender // whose message led to the call
	Tool   string
	Source string          // the server the tool belongs to; "" = built in
	Input  json.RawMessage // what the model would call it with: its own words, not a person's
}

// Bounds of tool calls.
const (
	defaultToolTimeout = 60 * time.Second
	approvalTimeout    = 60 * time.Second
	toolGrace          = 2 * time.Second // after its time a call may still report what it did
	maxToolOutput      = 64 << 10        // bytes of one result in the conversation
	maxCalls           = 32              // of one answer
)

// What a model is told of calls that brought nothing.
const (
	textSkipped = "Skipped due to queued user message." // spec/chat.md §1.5
)

var (
	errNotRun     = errors.New("not run: the turn was stopped before")
	errTooMany    = errors.New("not run: too many calls at once")
	errCallTime   = errors.New("the call's time is over")
	errAskTime    = errors.New("nobody answered in time")
	errDenied     = errors.New("not run: a person did not agree to this call")
	errNobody     = errors.New("not run: this call needs a person's consent, and nobody is there to ask")
	errNoConsent  = errors.New("not run: nobody agreed to this call in time")
	errAskFailed  = errors.New("not run: the question for consent could not be asked")
	errCrashed    = errors.New("the turn crashed")
	errUnknownEnd = errors.New("no result: the call did not end when it was stopped; whether it did its work is unknown")
)

// toolbox returns the tools of a turn. They and their order are the same every time, whatever began the
// turn, so that the beginning of requests is; of two with one name the first counts.
func (r *Runner) toolbox(q Request, cfg Agent) []Tool {
	tools := slices.Clone(r.deps.ToolsFor(q.Agent, q.To))
	if cfg.Commitments {
		tools = append([]Tool{{Tool: offerReminder(), offers: true}}, tools...)
	}
	slices.SortStableFunc(tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(tools, func(a, b Tool) bool { return a.Name == b.Name })
}

// toolSpecs are the turn's tools as the model sees them.
func (t *turn) toolSpecs() []llm.Tool {
	specs := make([]llm.Tool, len(t.tools))
	for i, tool := range t.tools {
		specs[i] = tool.Tool
	}
	return specs
}

// tool finds a tool of the turn.
func (t *turn) tool(name string) (Tool, bool) {
	i := slices.IndexFunc(t.tools, func(x Tool) bool { return x.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return t.tools[i], true
}

// result makes what the model is told of a call.
func (t *turn) result(c llm.ToolCall, foreign bool, text string, err error) *llm.ToolResult {
	r := &llm.ToolResult{ID: c.ID, Name: c.Name, Text: text}
	if err != nil {
		r.Text, r.IsError = err.Error(), true
	}
	if len(r.Text) > maxToolOutput {
		r.Text = cutText(r.Text, maxToolOutput) + "\n[cut]"
	}
	if foreign {
		r.Text = harmless(r.Text)
	}
	r.Text = strings.ToValidUTF8(r.Text, "\uFFFD")
	return r
}

// Bounds of the files that tools may put beside an answer.
const (
	maxAttached      = 8
	maxAttachedBytes = 50 << 20
)

// attached collects the files for an answer. Calls that were given up may still add to it.
type attached struct {
	mu    sync.Mutex
	files []chat.Attachment
	bytes int
	done  bool
}

func (a *attached) add(f chat.Attachment) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.done:
		return errors.New("the turn is over")
	case len(a.files) == maxAttached || a.bytes+len(f.Data) > maxAttachedBytes:
		return errors.New("the answer holds no more files")
	}
	a.files, a.bytes = append(a.files, f), a.bytes+len(f.Data)
	return nil
}

// take returns the files and closes the collection.
func (a *attached) take() []chat.Attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
	return a.files
}
