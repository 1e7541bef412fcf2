package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"understudy/config"
	"understudy/gateway"
	"understudy/heartbeat"
	"understudy/internal/sqlite"
)

// HeartbeatReport is how an agent's heartbeats stand, for verbs and programs.
type HeartbeatReport struct {
	Agent    string           `json:"agent"`
	On       bool             `json:"on"`
	Every    string           `json:"every,omitempty"`
	Next     time.Time        `json:"next,omitzero"`
	Last     heartbeat.Report `json:"last,omitzero"`
	Why      string           `json:"why,omitempty"` // of a skipped or failed one, in words
	LastRun  time.Time        `json:"lastRun,omitzero"`
	Failures int              `json:"failures,omitempty"` // in a row
}

// heartbeatQuery names an agent; "" = the default one. Scratch replaces its checklist where Set is true;
// nil removes it.
type heartbeatQuery struct {
	Agent   string  `json:"agent,omitempty"`
	Set     bool    `json:"set,omitempty"`
	Scratch *string `json:"scratch,omitempty"`
}

// heartbeatScratch is a checklist; nil = there is none.
type heartbeatScratch struct {
	Scratch  *string `json:"scratch"`
	Revision int64   `json:"revision"`
}

func (a *App) heartbeatRoutes(c *gateway.Control) {
	c.Handle("POST /v1/heartbeat/last", answer(func(ctx context.Context, q heartbeatQuery) (any, error) {
		st, err := a.pulse.State(ctx, a.beatAgent(q))
		return heartbeatReport(a.beatAgent(q), st), err
	}))
	c.Handle("POST /v1/heartbeat/now", answer(func(ctx context.Context, q heartbeatQuery) (any, error) {
		r, err := a.pulse.Now(ctx, a.beatAgent(q))
		return HeartbeatReport{Agent: a.beatAgent(q), Last: r, Why: r.Text()}, err
	}))
	c.HandleLarge("POST /v1/heartbeat/scratch", heartbeat.MaxScratch*8, answer(func(ctx context.Context, q heartbeatQuery) (any, error) {
		return scratch(ctx, a.beats, a.beatAgent(q), q)
	}))
}

func (a *App) beatAgent(q heartbeatQuery) string {
	if q.Agent == "" {
		return a.cfg().DefaultAgent()
	}
	return q.Agent
}

func heartbeatReport(agent string, st heartbeat.Status) HeartbeatReport {
	r := HeartbeatReport{Agent: agent, On: st.On, Next: st.Next, Last: st.Last, Why: st.Last.Text(), LastRun: st.LastRun, Failures: st.Failures}
	if st.Every > 0 {
		r.Every = st.Every.String()
	}
	return r
}

// scratch changes and returns a checklist.
func scratch(ctx context.Context, s *heartbeat.Store, agent string, q heartbeatQuery) (heartbeatScratch, error) {
	if q.Set {
		if err := s.SetScratch(ctx, agent, q.Scratch); err != nil {
			return heartbeatScratch{}, err
		}
	}
	text, revision, ok, err := s.Scratch(ctx, agent)
	out := heartbeatScratch{Revision: revision}
	if ok {
		out.Scratch = &text
	}
	return out, err
}

// beside works on the store of heartbeats where no bot runs.
func besideHeartbeat(ctx context.Context, o Options, agent string, f func(*heartbeat.Store, string) error) error {
	cfg, _, err := config.Load(loadOptions(o))
	if err != nil {
		return err
	}
	if agent == "" {
		agent = cfg.DefaultAgent()
	}
	return withState(ctx, o, func(db *sqlite.DB) error {
		s, err := heartbeat.NewStore(ctx, db)
		if err != nil {
			return err
		}
		return f(s, agent)
	})
}

// HeartbeatLast is `bot heartbeat last`.
func HeartbeatLast(ctx context.Context, o Options, std Std, agent string, asJSON bool) int {
	var r HeartbeatReport
	c, err := remote(o)
	if err == nil {
		err = c.Post(ctx, "/v1/heartbeat/last", heartbeatQuery{Agent: agent}, &r)
	}
	if errors.Is(err, gateway.ErrNoServer) {
		err = besideHeartbeat(ctx, o, agent, func(s *heartbeat.Store, agent string) error {
			record, err := s.Load(ctx, agent)
			r = heartbeatReport(agent, heartbeat.Status{Record: record})
			return err
		})
	}
	return show(std, r, err, asJSON, printHeartbeat)
}

func printHeartbeat(w io.Writer, r HeartbeatReport) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	line := func(key, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", key, printable(fmt.Sprintf(format, args...)))
	}
	state := "off"
	if r.On {
		state = "every " + r.Every
	}
	line("heartbeat", "%s: %s", r.Agent, state)
	if !r.Next.IsZero() {
		line("next", "%s", r.Next.Local().Format("2006-01-02 15:04:05"))
	}
	if r.Last.At.IsZero() {
		line("last", "none yet")
		return t.Flush()
	}
	last := fmt.Sprintf("%s: %s", r.Last.At.Local().Format("2006-01-02 15:04:05"), r.Last.Outcome)
	if r.Last.Why != "" {
		last += " (" + string(r.Last.Why) + ")"
	}
	if r.Why != "" {
		last += " — " + r.Why
	}
	line("last", "%s", last)
	if !r.Last.Model.IsZero() {
		line("answered", "%s, after %s", r.Last.Model, r.Last.Took.Round(100*time.Millisecond))
	}
	if r.Last.Excerpt != "" {
		line("found", "%s", r.Last.Excerpt)
	}
	if r.Failures > 0 {
		line("failures", "%d in a row", r.Failures)
	}
	return t.Flush()
}

// HeartbeatNow is `bot heartbeat now`: it waits for what comes of it. Exit code 1 tells that it failed
// or did not happen.
func HeartbeatNow(ctx context.Context, o Options, std Std, agent string) int {
	var r HeartbeatReport
	c, err := remote(o)
	if err == nil {
		err = c.Post(ctx, "/v1/heartbeat/now", heartbeatQuery{Agent: agent}, &r)
	}
	code := show(std, r, err, false, func(w io.Writer, r HeartbeatReport) error {
		text := string(r.Last.Outcome)
		if r.Why != "" {
			text += ": " + r.Why
		}
		if r.Last.Excerpt != "" {
			text += "\n" + r.Last.Excerpt
		}
		_, err := fmt.Fprintln(w, text)
		return err
	})
	if code == ExitOK && r.Last.Outcome != heartbeat.OK && r.Last.Outcome != heartbeat.Alert {
		return ExitFailed
	}
	return code
}

// ScratchChange is what `bot heartbeat scratch` does: at most one of the fields is set.
type ScratchChange struct {
	Set   *string // the text itself
	File  string  // a file with the text; - = standard input
	Unset bool
}

// HeartbeatScratch is `bot heartbeat scratch`: it shows or changes the checklist.
func HeartbeatScratch(ctx context.Context, o Options, std Std, agent string, x ScratchChange) int {
	q := heartbeatQuery{Agent: agent, Set: x.Unset || x.Set != nil || x.File != "", Scratch: x.Set}
	if x.File != "" {
		text, err := readScratch(std, x.File)
		if err != nil {
			return fail(std, err)
		}
		q.Scratch = &text
	}
	var s heartbeatScratch
	c, err := remote(o)
	if err == nil {
		err = c.Post(ctx, "/v1/heartbeat/scratch", q, &s)
	}
	if errors.Is(err, gateway.ErrNoServer) {
		err = besideHeartbeat(ctx, o, agent, func(store *heartbeat.Store, agent string) (err error) {
			s, err = scratch(ctx, store, agent, q)
			return err
		})
	}
	return show(std, s, err, false, func(w io.Writer, s heartbeatScratch) error {
		switch {
		case s.Scratch == nil:
			_, err = fmt.Fprintln(w, "There is no checklist.")
		case q.Set:
			_, err = fmt.Fprintf(w, "The checklist is stored (%d bytes).\n", len(*s.Scratch))
		default:
			_, err = fmt.Fprintln(w, *s.Scratch)
		}
		return err
	})
}

// readScratch reads a checklist from a file.
func readScratch(std Std, path string) (string, error) {
	var in io.Reader = std.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, heartbeat.MaxScratch+1))
	return string(data), err
}
