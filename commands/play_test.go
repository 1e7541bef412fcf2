package commands_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"understudy/chat"
	"understudy/commands"
	"understudy/cron"
	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/session"
)

// furnish gives a registry everything there can be. Scheduled tasks are those of the real scheduler,
// which does not run them; what stands for the rest is as plain as it can be.
func furnish(t testing.TB) func(*commands.Deps) {
	t.Helper()
	return func(d *commands.Deps) {
		jobs := newJobs(t, d)
		d.Cron, d.Reminders, d.Loops = jobs, jobs, jobs
		d.Authorised = func(c commands.Call) bool { return c.In.Sender.ID != "stranger" }
		d.Aside = func(_ context.Context, _ commands.Call, question string) (string, error) {
			return "You asked: " + question, nil
		}
		d.Steer = func(_ context.Context, c commands.Call, _ string) (bool, error) {
			return d.Lanes.State(c.Key).Active, nil
		}
		d.Context = func(context.Context, commands.Call) (commands.ContextReport, error) {
			return commands.ContextReport{
				Model: mustRef("alpha/a1"), Window: 1000, Reserve: 200, System: 50, Tools: 40, ToolCount: 3, Summary: 20,
				Messages: 140, MessageCount: 6, Total: 280, Reported: 275, Compactions: 1,
				Files: []commands.ContextFile{{Name: "AGENTS.md", Tokens: 20}, {Name: "notes.md", Tokens: 10}},
			}, nil
		}
		d.Probe = func(_ context.Context, _ string, ref llm.ModelRef) (answered, asked bool, err error) {
			switch ref.Provider {
			case "alpha":
				return false, true, fmt.Errorf("probing: %w", &llm.Error{Failure: llm.Failure{Reason: llm.ReasonRateLimit}})
			case "gamma":
				return true, true, nil
			}
			return false, false, nil
		}
		d.NextProbe = func() time.Time { return d.Clock.Now().Add(4 * time.Minute) }
		d.Restart = func(context.Context, commands.Call) error { return nil }
		d.Pair = func(_ context.Context, c commands.Call, channel, code string) (commands.Paired, error) {
			if code != "ABCD2345" {
				return commands.Paired{}, &commands.Refusal{Text: "I don't know this code, or it has expired."}
			}
			if channel == "" {
				channel = c.To.Channel
			}
			return commands.Paired{Channel: channel, Sender: chat.Sender{ID: "9", Name: "Anna"}}, nil
		}
		d.Activations, d.Speech, d.Heartbeat = activations{}, &speech{sessions: d.Sessions}, &pulse{d: d}
		d.Sim = func(_ context.Context, _, args string) (string, error) { return "sim: " + args, nil }
	}
}

type activations map[string]string

func (a activations) Activation(c commands.Call) (mode string, chosen bool) {
	if mode, chosen = a[c.Key]; chosen {
		return mode, true
	}
	return "mention", false
}

func (a activations) SetActivation(c commands.Call, mode string) { a[c.Key] = mode }

// speech speaks nothing, but remembers how it would.
type speech struct {
	sessions       commands.Sessions
	auto, provider string
	limit          int
	last           string
}

func (s *speech) Status(ctx context.Context, c commands.Call) (commands.SpeechStatus, error) {
	st := commands.SpeechStatus{Auto: "off", Provider: "openai", Providers: []string{"openai", "espeak"}, Voice: "coral", Limit: 1500}
	if s.auto != "" {
		st.Auto = s.auto
	}
	if s.provider != "" {
		st.Provider = s.provider
	}
	if s.limit != 0 {
		st.Limit = s.limit
	}
	row, err := s.sessions.Get(ctx, c.Key)
	if errors.Is(err, session.ErrNotFound) {
		return st, nil
	}
	if row.TTSAuto != "" {
		st.Auto = row.TTSAuto
	}
	return st, err
}

func (s *speech) SetAuto(_ context.Context, _ commands.Call, auto string) error {
	s.auto = auto
	return nil
}

func (s *speech) SetProvider(_ context.Context, _ commands.Call, provider string) error {
	if provider != "openai" && provider != "espeak" {
		return &commands.Refusal{Text: "There is no such provider."}
	}
	s.provider = provider
	return nil
}

func (s *speech) SetLimit(_ context.Context, _ commands.Call, n int) error {
	s.limit = n
	return nil
}

func (s *speech) Audio(_ context.Context, _ commands.Call, text string) (chat.Attachment, error) {
	return chat.Attachment{Name: "speech.mp3", Data: []byte(text)}, nil
}

func (s *speech) Latest(ctx context.Context, c commands.Call) (chat.Attachment, error) {
	if s.last == c.Key {
		return chat.Attachment{}, &commands.Refusal{Text: "I have spoken this answer already."}
	}
	s.last = c.Key
	return s.Audio(ctx, c, "the answer")
}

// pulse is a heartbeat that is switched and never beats.
type pulse struct {
	d   *commands.Deps
	off bool
}

func (p *pulse) State(context.Context, string) (commands.HeartbeatState, error) {
	now := p.d.Clock.Now()
	return commands.HeartbeatState{
		On: !p.off, Every: 30 * time.Minute, Last: now.Add(-12 * time.Minute), Outcome: "skipped", Reason: "quiet hours", Next: now.Add(18 * time.Minute),
	}, nil
}
func (p *pulse) Now(context.Context, string) error { return nil }

func (p *pulse) Switch(_ context.Context, _ string, on bool) error {
	p.off = !on
	return nil
}

// jobs are the tasks of the real scheduler.
type jobs struct {
	d *commands.Deps
	s *cron.Scheduler
}

func newJobs(t testing.TB, d *commands.Deps) jobs {
	t.Helper()
	db, err := sqlite.Open(t.Context(), t.TempDir()+"/state/cron.sqlite", sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := cron.NewStore(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	s, err := cron.New(cron.Config{}, cron.Deps{
		Store: store, Runner: nobody{}, Announcer: nobody{}, Owner: nobody{}, Clock: d.Clock, Log: slog.New(slog.DiscardHandler),
		Home:  cron.Home{Zone: time.UTC, Named: true},
		NewID: func() string { n++; return strings.Repeat(string(rune('a'+n-1)), 10) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return jobs{d, s}
}

// nobody does the work of a scheduler that does none.
type nobody struct{}

func (nobody) Run(context.Context, cron.Task) (cron.Result, error) {
	return cron.Result{}, errors.New("unexpected run")
}

func (nobody) Announce(context.Context, cron.Announcement) (cron.Arrival, []string, error) {
	return 0, nil, errors.New("unexpected announcement")
}

func (nobody) Tell(context.Context, string, string) error { return errors.New("unexpected message") }

func view(c cron.Card, err error) (commands.Job, error) {
	if errors.Is(err, cron.ErrStopped) {
		err = &commands.Refusal{Text: "Tasks are not run at the moment."}
	}
	j := commands.Job{
		ID: c.ID, Name: c.Name, Agent: c.Agent, Enabled: c.Enabled, Schedule: c.Description, Next: c.Next, Prompt: c.Payload.Message,
		Model: c.Payload.Model, Session: string(c.Target), Running: c.State.Running(), LastRun: c.State.LastRunAt,
		LastStatus: string(c.State.LastStatus), Failures: c.State.ConsecutiveErrors, OffBecause: c.State.DisabledReason,
	}
	if c.Delivery.Mode == cron.Announce {
		j.Delivery = c.Delivery.To.Channel + " " + c.Delivery.To.Conversation
	}
	return j, err
}

func (x jobs) List(ctx context.Context, all bool) ([]commands.Job, error) {
	rows, err := x.s.Store().List(ctx, all)
	var list []commands.Job
	for _, row := range rows {
		j, _ := view(x.s.Card(row), nil)
		list = append(list, j)
	}
	return list, err
}

func (x jobs) Summary(ctx context.Context) (int, commands.Job, error) {
	list, err := x.List(ctx, false)
	if err != nil || len(list) == 0 {
		return 0, commands.Job{}, err
	}
	return len(list), list[0], nil
}

func (x jobs) Add(ctx context.Context, c commands.Call, d commands.JobDraft) (commands.Job, error) {
	return view(x.s.Add(ctx, cron.Draft{
		Name: d.Name, Agent: c.Agent, CreatedBy: c.In.Sender.ID, Schedule: d.Schedule, Zone: d.Zone, Exact: d.Exact, Target: cron.Target(d.Session),
		Origin: c.To, Session: c.Key, Message: d.Prompt, Model: d.Model, Thinking: d.Thinking, TimeoutSeconds: int(d.Timeout.Seconds()),
		Quiet: d.Quiet, Keep: d.Keep,
	}))
}

func (x jobs) Edit(ctx context.Context, id string, p commands.JobPatch) (commands.Job, error) {
	patch := cron.Patch{
		Name: p.Name, Schedule: p.Schedule, Zone: p.Zone, Message: p.Prompt, Model: p.Model, Thinking: p.Thinking, Exact: p.Exact, Quiet: p.Quiet, Keep: p.Keep,
	}
	if p.Session != nil {
		target := cron.Target(*p.Session)
		patch.Target = &target
	}
	if p.Timeout != nil {
		s := int(p.Timeout.Seconds())
		patch.TimeoutSeconds = &s
	}
	return view(x.s.Edit(ctx, id, patch))
}

func (x jobs) Enable(ctx context.Context, id string) (commands.Job, error) {
	return view(x.s.Enable(ctx, id))
}

func (x jobs) Disable(ctx context.Context, id string) (commands.Job, error) {
	return view(x.s.Disable(ctx, id))
}
func (x jobs) Remove(ctx context.Context, id string) error { return x.s.Remove(ctx, id) }

func (x jobs) Run(ctx context.Context, id string) error {
	_, err := x.s.RunNow(ctx, id, false)
	_, err = view(cron.Card{}, err)
	return err
}

func (x jobs) Runs(ctx context.Context, id string, limit int) ([]commands.JobRun, error) {
	rows, err := x.s.Store().Runs(ctx, id, limit)
	var list []commands.JobRun
	for _, r := range rows {
		list = append(list, commands.JobRun{ID: r.ID, Scheduled: r.ScheduledAt, Started: r.StartedAt, Status: string(r.Status)})
	}
	return list, err
}

// Remind takes the longest beginning of the text that is a schedule.
func (x jobs) Remind(ctx context.Context, c commands.Call, text string) (commands.Job, error) {
	words := strings.Fields(text)
	for n := len(words) - 1; n > 0; n-- {
		what := strings.Join(words[n:], " ")
		j, err := x.Add(ctx, c, commands.JobDraft{Schedule: strings.Join(words[:n], " "), Prompt: what, Name: "Reminder: " + what, Session: "current"})
		if err == nil {
			j.Name = what
			return j, nil
		}
	}
	return commands.Job{}, &commands.Refusal{Text: "When, and of what? For example: `/remind 20m stretch`"}
}

func (x jobs) of(ctx context.Context, c commands.Call, prefix string) ([]commands.Job, error) {
	list, err := x.List(ctx, false)
	var own []commands.Job
	for _, j := range list {
		name, ok := strings.CutPrefix(j.Name, prefix)
		if j.Name = name; ok && j.Delivery == c.To.Channel+" "+c.To.Conversation {
			own = append(own, j)
		}
	}
	return own, err
}

func (x jobs) Reminders(ctx context.Context, c commands.Call) ([]commands.Job, error) {
	return x.of(ctx, c, "Reminder: ")
}

func (x jobs) Forget(ctx context.Context, _ commands.Call, id string) error {
	return x.s.Remove(ctx, id)
}

func (x jobs) Start(ctx context.Context, c commands.Call, every time.Duration, prompt string) (commands.Job, error) {
	j, err := x.Add(ctx, c, commands.JobDraft{
		Schedule: "every " + strings.TrimSuffix(every.String(), "0s"), Prompt: prompt, Name: "Loop: " + prompt, Session: "current",
	})
	j.Name = prompt
	return j, err
}

func (x jobs) Loops(ctx context.Context, c commands.Call) ([]commands.Job, error) {
	return x.of(ctx, c, "Loop: ")
}

func (x jobs) Stop(ctx context.Context, _ commands.Call, id string) error { return x.s.Remove(ctx, id) }
