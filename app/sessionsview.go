package app

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"understudy/chat"
	"understudy/llm"
	"understudy/reply"
	"understudy/session"
)

// sessionShelf shows what is stored of conversations, beside a running bot or within it.
type sessionShelf struct {
	store  *session.Store
	titles *history
}

func newShelf(store *session.Store) sessionShelf {
	return sessionShelf{store: store, titles: &history{a: &App{sessions: store}}}
}

// SessionInfo is a session as `bot sessions` and the RPC show it.
type SessionInfo struct {
	Key               string       `json:"key"`
	ID                string       `json:"id"` // of the present transcript
	Agent             string       `json:"agent"`
	Title             string       `json:"title,omitempty"` // the beginning of what was said first
	Address           chat.Address `json:"address"`
	StartedAt         time.Time    `json:"startedAt,omitzero"`
	LastInteractionAt time.Time    `json:"lastInteractionAt,omitzero"` // of the last thing a person wrote
	UpdatedAt         time.Time    `json:"updatedAt,omitzero"`

	Model     string        `json:"model,omitempty"` // chosen here; "" = as configured
	Profile   string        `json:"profile,omitempty"`
	Think     string        `json:"think,omitempty"`
	Queue     string        `json:"queue,omitempty"`
	LastModel string        `json:"lastModel,omitempty"` // that answered last
	Fallback  *FallbackInfo `json:"fallback,omitempty"`

	TokensIn    int64 `json:"tokensIn"`
	TokensOut   int64 `json:"tokensOut"`
	Context     int64 `json:"contextTokens"`
	Compactions int   `json:"compactions"`

	// Running and Waiting are known while a bot runs only.
	Running bool `json:"running,omitempty"`
	Waiting int  `json:"waiting,omitempty"`
}

// FallbackInfo tells that another model answers than the selected one.
type FallbackInfo struct {
	Selected string    `json:"selected"`
	Active   string    `json:"active"`
	Reason   string    `json:"reason,omitempty"`
	Since    time.Time `json:"since,omitzero"`
}

// MessageInfo is an entry of a transcript as it is shown.
type MessageInfo struct {
	Seq   int64     `json:"seq"`
	Kind  string    `json:"kind"` // message, compaction, note
	Role  string    `json:"role"`
	Text  string    `json:"text,omitempty"`
	Tools []string  `json:"tools,omitempty"` // names of the tools that were called
	Model string    `json:"model,omitempty"` // that wrote it
	At    time.Time `json:"at"`
}

// info is a session as it is shown. A title that cannot be read is none.
func (x sessionShelf) info(ctx context.Context, s session.Session) SessionInfo {
	i := SessionInfo{
		Key: s.Key, ID: s.ID, Agent: s.AgentID, Address: s.Address,
		StartedAt: utc(s.StartedAt), LastInteractionAt: utc(s.LastInteractionAt), UpdatedAt: utc(s.UpdatedAt),
		Profile: string(s.Pin.Profile), Think: s.Think, LastModel: refName(s.LastModel),
		TokensIn: s.TokensIn, TokensOut: s.TokensOut, Context: s.TokensContext, Compactions: s.Compactions,
	}
	if s.Pin.Source != session.SourceUser {
		i.Profile = "" // it follows the answers
	}
	if s.Override.User() {
		i.Model = refName(s.Override.Model)
	}
	var q session.Queue
	if len(s.Queue) > 0 && json.Unmarshal(s.Queue, &q) == nil && !q.IsZero() {
		i.Queue = q.String()
	}
	if n := s.Notice; n != (session.Pair{}) {
		i.Fallback = &FallbackInfo{Selected: refName(n.Selected), Active: refName(n.Active), Reason: n.Reason, Since: utc(s.NoticeSince)}
	}
	i.Title, _ = x.titles.title(ctx, s.ID)
	return i
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

func refName(r llm.ModelRef) string {
	if r.IsZero() {
		return ""
	}
	return r.String()
}

// list returns sessions, the last changed first.
func (x sessionShelf) list(ctx context.Context, agent string, limit int) ([]SessionInfo, error) {
	list, err := x.store.List(ctx, session.Filter{AgentID: agent, Limit: limit})
	if err != nil {
		return nil, err
	}
	out := make([]SessionInfo, 0, len(list))
	for _, s := range list {
		out = append(out, x.info(ctx, s))
	}
	return out, nil
}

// messages returns the end of a transcript, or what stands before an entry.
func (x sessionShelf) messages(ctx context.Context, id string, before int64, limit int) ([]MessageInfo, error) {
	out := []MessageInfo{}
	if limit == 0 {
		return out, nil
	}
	entries, err := x.store.Page(ctx, id, before, limit)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		m := MessageInfo{
			Seq: e.Seq, Kind: string(e.Kind), Role: string(e.Message.Role), Text: strings.TrimSpace(reply.Spoken(e.Message)),
			Model: refName(e.Model), At: utc(e.At),
		}
		for _, p := range e.Message.Parts {
			if p.ToolCall != nil {
				m.Tools = append(m.Tools, p.ToolCall.Name)
			}
		}
		out = append(out, m)
	}
	return out, nil
}
