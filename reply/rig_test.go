package reply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"understudy/chat"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/internal/secret"
	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/notices"
	"understudy/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

func ref(s string) llm.ModelRef {
	r, err := llm.ParseRef(s)
	if err != nil {
		panic(err)
	}
	return r
}

func refs(s string) (list []llm.ModelRef) {
	for _, x := range strings.Fields(s) {
		list = append(list, ref(x))
	}
	return list
}

type seq = iter.Seq2[llm.Event, error]

// behaviour is what a model does with its n-th request.
type behaviour func(ctx context.Context, n int, req llm.Request) seq

// rig is a Runner over a real session store, models that do what the test says, and a channel that
// writes down what is said. Time is virtual.
type rig struct {
	*testing.T
	v        *clock.Virtual
	sessions *session.Store
	agent    Agent
	notices  notices.Config
	models   map[string]behaviour // by model
	info     map[llm.ModelRef]failover.ModelInfo
	creds    *credentials
	runner   *Runner
	log      bytes.Buffer

	mu    sync.Mutex
	asked []llm.Request
	out   *outbox
	turns int
}

func newRig(t *testing.T, tools ...Tool) *rig {
	r := &rig{
		T: t, v: clock.NewVirtual(start), models: map[string]behaviour{}, info: map[llm.ModelRef]failover.ModelInfo{},
		agent: Agent{
			System: "You are a helpful bot.", Zone: time.UTC, Timeout: 10 * time.Minute,
			Models: policy.Models{Primary: ref("alpha/a1"), Fallbacks: refs("beta/b1 gamma/g1")},
		},
		creds: newCredentials("alpha:p1", "beta:p1", "gamma:p1"), out: &outbox{},
	}
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "state", "bot.sqlite"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	n := 0
	r.sessions, err = session.New(t.Context(), db, session.Deps{Clock: r.v.Clock(), NewID: func() string { n++; return fmt.Sprintf("s%d", n) }})
	if err != nil {
		t.Fatal(err)
	}
	r.build(r.sessions, tools...)
	return r
}

func (r *rig) build(sessions Sessions, tools ...Tool) {
	log := slog.New(slog.NewJSONHandler(&r.log, nil))
	fo := failover.New(failover.Deps{
		Store:    func(string) (failover.Store, error) { return r.creds, nil },
		Models:   func() failover.Models { return r },
		Settings: func() *failover.Settings { return &failover.Settings{Rules: policy.DefaultRules()} },
		Clock:    r.v.Clock(), Log: log,
	})
	r.runner = New(Deps{
		Failover: fo, Sessions: sessions, Tools: tools, Clock: r.v.Clock(), Log: log,
		Begin:   func(chat.Address, *chat.Inbound, string) Delivery { return r.out },
		Agent:   func(string) Agent { return r.agent },
		Models:  func() failover.Models { return r },
		Notices: func() notices.Config { return r.notices },
		Fetch: func(_ context.Context, _ *chat.Inbound, a chat.Attachment, most int64) ([]byte, error) {
			if int64(len(a.Ref)) > most {
				return nil, ErrFileTooLarge
			}
			if a.Ref == "gone" {
				return nil, errors.New("404")
			}
			return []byte(a.Ref), nil
		},
		IsSilent: func(s string) bool { return strings.EqualFold(s, "NO_REPLY") },
		Clean:    func(s string) string { return strings.ReplaceAll(s, "<think>hm</think>", "") },
	})
}

// failover.Models

func (r *rig) Client(string) (llm.Client, error)                            { return r, nil }
func (r *rig) Info(m llm.ModelRef) failover.ModelInfo                       { return r.info[m] }
func (r *rig) IdleTimeout(string) time.Duration                             { return 2 * time.Minute }
func (r *rig) Virtual(string) (p policy.Profile, c llm.Credential, ok bool) { return p, c, false }

// Stream implements llm.Client for every provider.
func (r *rig) Stream(ctx context.Context, _ llm.Credential, req llm.Request) seq {
	r.mu.Lock()
	r.asked = append(r.asked, req)
	n := 0
	for _, q := range r.asked {
		if q.Model == req.Model {
			n++
		}
	}
	r.mu.Unlock()
	if f := r.models[req.Model.Model]; f != nil {
		return f(ctx, n, req)
	}
	return says("ok from "+req.Model.Model)(ctx, n, req)
}

// story is who was asked, in order.
func (r *rig) story() string {
	var list []string
	for _, q := range r.asked {
		list = append(list, q.Model.Model)
	}
	return strings.Join(list, " ")
}

func (r *rig) last() llm.Request { return r.asked[len(r.asked)-1] }

func events(evs ...llm.Event) behaviour {
	return func(context.Context, int, llm.Request) seq {
		return func(yield func(llm.Event, error) bool) {
			for _, ev := range evs {
				if !yield(ev, nil) {
					return
				}
			}
		}
	}
}

var end = llm.Event{Done: &llm.Done{Stop: llm.StopEnd, Usage: llm.Usage{Input: 10, Output: 2, ContextSize: 12}}}

func says(text string) behaviour { return events(llm.Event{Text: text}, end) }

// calls is an answer that calls tools, after a remark if there is one.
func calls(remark string, names ...string) behaviour {
	return func(ctx context.Context, n int, req llm.Request) seq {
		var evs []llm.Event
		if remark != "" {
			evs = append(evs, llm.Event{Text: remark})
		}
		for i, name := range names {
			evs = append(evs, llm.Event{ToolCall: &llm.ToolCall{ID: fmt.Sprintf("c%d_%d", n, i), Name: name, Input: []byte(`{}`)}})
		}
		evs = append(evs, llm.Event{Done: &llm.Done{Stop: llm.StopToolUse}})
		return events(evs...)(ctx, n, req)
	}
}

func fails(reason llm.Reason) behaviour {
	return failsWith(llm.Failure{Reason: reason, Status: 400, Message: "RAW provider text sk-secret"})
}

func failsWith(f llm.Failure) behaviour {
	return func(context.Context, int, llm.Request) seq {
		return func(yield func(llm.Event, error) bool) {
			yield(llm.Event{}, &llm.Error{Failure: f, Err: errors.New("RAW cause")})
		}
	}
}

// inTurn does one thing after the other, the last one for ever.
func inTurn(list ...behaviour) behaviour {
	return func(ctx context.Context, n int, req llm.Request) seq {
		return list[min(n, len(list))-1](ctx, n, req)
	}
}

// meanwhile lets something happen before b answers.
func meanwhile(do func(), b behaviour) behaviour {
	return func(ctx context.Context, n int, req llm.Request) seq {
		do()
		return b(ctx, n, req)
	}
}

// after answers like b once d has passed.
func (r *rig) after(d time.Duration, b behaviour) behaviour {
	return func(ctx context.Context, n int, req llm.Request) seq {
		return func(yield func(llm.Event, error) bool) {
			if err := r.v.Clock().Sleep(ctx, d); err != nil {
				yield(llm.Event{}, err)
				return
			}
			b(ctx, n, req)(yield)
		}
	}
}

var dm = chat.Address{Channel: "telegram", Conversation: "7", Kind: chat.Direct}

func message(text string) Request {
	return Request{
		Agent: "main", Key: "agent:main:telegram:direct:7", To: dm, Text: text,
		In: &chat.Inbound{ID: "m1", Address: dm, Sender: chat.Sender{ID: "7", Name: "Ada"}, Text: text, At: start},
	}
}

// say runs one turn with a message.
func (r *rig) say(text string) Outcome { return r.run(message(text)) }

func (r *rig) run(q Request) Outcome { return r.runCtx(context.Background(), q) }

func (r *rig) runCtx(ctx context.Context, q Request) Outcome {
	r.Helper()
	r.turns++
	if q.ID == "" {
		q.ID = fmt.Sprintf("t%d", r.turns)
	}
	r.out.reset()
	var o Outcome
	err := errors.New("the turn did not end")
	r.v.Clock().Go(func() { o, err = r.runner.Run(ctx, q) })
	r.v.Run(r.v.Now().Add(1000 * time.Hour))
	if err != nil {
		r.Fatal(err)
	}
	return o
}

func (r *rig) session() session.Session { return r.sessionOf(message("").Key) }

func (r *rig) sessionOf(key string) session.Session {
	r.Helper()
	s, err := r.sessions.Get(r.Context(), key)
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// update changes the session's row, which must exist.
func (r *rig) update(f func(*session.Session)) {
	r.Helper()
	_, err := r.sessions.Update(r.Context(), message("").Key, func(s *session.Session) error { f(s); return nil })
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) ensure() {
	r.Helper()
	if _, _, err := r.sessions.Ensure(r.Context(), session.Seed{Key: message("").Key, AgentID: "main", Address: dm}); err != nil {
		r.Fatal(err)
	}
}

// transcript is what the session remembers: "user: hi", "assistant: call f", "tool: result", …
func (r *rig) transcript() []string {
	r.Helper()
	entries, err := r.sessions.Page(r.Context(), r.session().ID, 0, 1000)
	if err != nil {
		r.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, string(e.Kind[:1])+" "+line(e.Message))
	}
	return list
}

// line writes a message in one line, without its envelope.
func line(m llm.Message) string {
	var parts []string
	for i, p := range m.Parts {
		switch {
		case p.ToolCall != nil:
			parts = append(parts, "call "+p.ToolCall.Name)
		case p.ToolResult != nil:
			parts = append(parts, "result "+p.ToolResult.Text)
		case p.Image != nil:
			parts = append(parts, "image "+p.Image.MediaType)
		case i == 0:
			parts = append(parts, Spoken(llm.Text(m.Role, p.Text)))
		default:
			parts = append(parts, p.Text)
		}
	}
	return string(m.Role) + ": " + strings.Join(parts, ", ")
}

func lines(ms []llm.Message) (list []string) {
	for _, m := range ms {
		list = append(list, line(m))
	}
	return list
}

// outbox is a turn's Delivery that writes down what it is told.
type outbox struct {
	mu        sync.Mutex
	said      []string // "notice …", "assistant …", "error …", in order
	preview   string
	shown     []string // what the preview looked like after each change
	ended     bool
	speech    *chat.Speech
	committed bool
	broken    error
}

func (o *outbox) reset() { *o = outbox{committed: o.committed, broken: o.broken} }

func (o *outbox) Stream(s string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s != "" {
		o.preview += s
		o.shown = append(o.shown, o.preview)
	}
}
func (o *outbox) Committed() bool { return o.committed }
func (o *outbox) Restart()        { o.preview = "" }
func (o *outbox) Hold()           { o.said = append(o.said, "hold") }
func (o *outbox) Notify(m chat.Outbound) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = append(o.said, m.Class.String()+" "+m.Markdown)
}

func (o *outbox) Finish(_ context.Context, m chat.Outbound) error {
	if o.broken != nil {
		return o.broken
	}
	o.Notify(m)
	o.ended, o.speech = true, m.Speech
	for _, f := range m.Media {
		what := "file "
		if f.Voice {
			what = "voice note "
		}
		o.said = append(o.said, what+f.Name)
	}
	return nil
}

func (o *outbox) Cancel() {
	if !o.ended {
		o.ended, o.preview = true, ""
		o.said = append(o.said, "cancel")
	}
}

// credentials is a failover.Store in memory.
type credentials struct {
	mu       sync.Mutex
	profiles []policy.Profile
	rows     policy.Health
	settled  []policy.Attempt
}

func newCredentials(ids ...llm.ProfileID) *credentials {
	c := &credentials{rows: policy.Health{}}
	for _, id := range ids {
		c.profiles = append(c.profiles, policy.Profile{ID: id, Kind: llm.KindAPIKey, HasSecret: true})
	}
	return c
}

func (c *credentials) Snapshot(context.Context) (policy.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return policy.Snapshot{Profiles: c.profiles, Health: maps.Clone(c.rows)}, nil
}

func (c *credentials) Credential(_ context.Context, id llm.ProfileID) (llm.Credential, error) {
	return llm.Credential{Profile: id, Kind: llm.KindAPIKey, Secret: secret.New("sk-secret")}, nil
}

func (c *credentials) Settle(_ context.Context, rules policy.Rules, a policy.Attempt) ([]policy.Changed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = append(c.settled, a)
	all, one := policy.Key{Profile: a.Profile}, policy.Key{Profile: a.Profile, Model: a.Model}
	after := rules.Settle(policy.Pair{All: c.rows[all], Model: c.rows[one]}, a)
	c.rows[all], c.rows[one] = after.All, after.Model
	return nil, nil
}

func (*credentials) ClaimProbe(context.Context, string, time.Time) (bool, error) { return true, nil }
func (*credentials) ReleaseProbe(context.Context, string, time.Time) error       { return nil }
