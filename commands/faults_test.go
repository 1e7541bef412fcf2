package commands_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"understudy/chat"
	"understudy/commands"
	"understudy/llm"
)

// broken is a part that always fails with something people must not read.
type broken struct{ jobs }

var errSecret = errors.New("dial: key sk-secret refused")

func (broken) Status(context.Context, commands.Call) (commands.SpeechStatus, error) {
	return commands.SpeechStatus{}, errSecret
}
func (broken) SetAuto(context.Context, commands.Call, string) error     { return errSecret }
func (broken) SetProvider(context.Context, commands.Call, string) error { return errSecret }
func (broken) SetLimit(context.Context, commands.Call, int) error       { return errSecret }

func (broken) Audio(context.Context, commands.Call, string) (chat.Attachment, error) {
	return chat.Attachment{}, errSecret
}

func (broken) Latest(context.Context, commands.Call) (chat.Attachment, error) {
	return chat.Attachment{}, errSecret
}

func (broken) State(context.Context, string) (commands.HeartbeatState, error) {
	return commands.HeartbeatState{}, errSecret
}
func (broken) Now(context.Context, string) error                  { return errSecret }
func (broken) Switch(context.Context, string, bool) error         { return errSecret }
func (broken) List(context.Context, bool) ([]commands.Job, error) { return nil, errSecret }

func (broken) Summary(context.Context) (int, commands.Job, error) {
	return 0, commands.Job{}, errSecret
}

func (broken) Add(context.Context, commands.Call, commands.JobDraft) (commands.Job, error) {
	return commands.Job{}, errSecret
}

func (broken) Remind(context.Context, commands.Call, string) (commands.Job, error) {
	return commands.Job{}, errSecret
}

func (broken) Start(context.Context, commands.Call, time.Duration, string) (commands.Job, error) {
	return commands.Job{}, errSecret
}

// TestFaultsAreNotTold lets everything fail: people are told that it did, and never with which words.
// The card of /status only lacks lines.
func TestFaultsAreNotTold(t *testing.T) {
	w := newWorld(t, furnish(t), func(d *commands.Deps) {
		b := broken{}
		d.Cron, d.Reminders, d.Loops, d.Speech, d.Heartbeat = b, b, b, b, b
		d.Aside = func(context.Context, commands.Call, string) (string, error) { return "", errSecret }
		d.Steer = func(context.Context, commands.Call, string) (bool, error) { return true, errSecret }
		d.Context = func(context.Context, commands.Call) (commands.ContextReport, error) {
			return commands.ContextReport{}, errSecret
		}
		d.Probe = func(context.Context, string, llm.ModelRef) (bool, bool, error) { return false, true, errSecret }
		d.Restart = func(context.Context, commands.Call) error { return errSecret }
		d.Pair = func(context.Context, commands.Call, string, string) (commands.Paired, error) {
			return commands.Paired{}, errSecret
		}
	})
	for _, text := range []string{
		"/btw x", "/steer x", "/context", "/failover probe", "/restart", "/pair approve ABCD2345", "/tts", "/tts on", "/tts off", "/tts provider",
		"/tts provider x", "/tts limit 200", "/tts audio x", "/tts latest", "/tts chat default", "/heartbeat", "/heartbeat now", "/heartbeat on",
		"/cron", "/cron show x", "/cron add 20m x", "/remind 20m x", "/loop 5m x",
	} {
		name, _, _ := strings.Cut(text, " ")
		w.says(direct(), text, "⚠️ "+name+" did not work because of a fault on my side; the log says which.")
	}
	if text := w.run(direct(), "/status").Text; !strings.Contains(text, "⚙️ Think: default · Queue: steer\n🧵") || strings.Contains(text, "sk-secret") {
		t.Error(text)
	}
	if list := w.reg.Complete(t.Context(), direct(), "cron", "task", ""); len(list) != 0 {
		t.Error(list)
	}
}

// logbook is a scheduler with a past.
type logbook struct{ jobs }

func (logbook) List(context.Context, bool) ([]commands.Job, error) {
	return []commands.Job{
		{
			ID: "abc", Name: "Report", Agent: "main", Schedule: "every hour", Prompt: "Report\n\nwhat is new", Session: "isolated", Delivery: "slack C1",
			OffBecause: "it failed 10 times", Failures: 10, LastRun: noon.Add(-time.Hour), LastStatus: "error", LastError: "rate limit",
		},
		{ID: "abd", Name: "Look", Agent: "main", Enabled: true, Running: true, Schedule: "every hour"},
		{ID: "abe", Name: "Look", Agent: "main", Enabled: true, Schedule: "once", Next: []time.Time{noon.AddDate(1, 0, 0)}},
	}, nil
}

func (logbook) Runs(context.Context, string, int) ([]commands.JobRun, error) {
	return []commands.JobRun{
		{ID: "r3", Started: noon.Add(-time.Minute), Status: "running"},
		{ID: "r2", Started: noon.Add(-time.Hour), Finished: noon.Add(-time.Hour + 9*time.Second), Status: "ok", Model: mustRef("beta/b1"), StoodIn: true, Excerpt: "All\nquiet."},
		{ID: "r1", Scheduled: noon.Add(-48 * time.Hour), Status: "skipped", Reason: "the machine was off"},
	}, nil
}

func TestTasksWithAPast(t *testing.T) {
	w := newWorld(t, furnish(t), func(d *commands.Deps) { d.Cron = logbook{} })
	var all []string
	for _, text := range []string{"/cron list all", "/cron show report", "/cron runs abc", "/cron show look", "/cron show ab"} {
		all = append(all, "> "+text, w.run(direct(), text).Text)
	}
	golden(t, "tasks", strings.Join(all, "\n"))
}

// TestExtractIsCheap gives it what would take minutes if every slash were looked at to the end of the
// text.
func TestExtractIsCheap(t *testing.T) {
	reg := newWorld(t, furnish(t)).reg
	for _, part := range []string{" /x", " /model x", "` `` ``` ", "/", "\n> /status", " /think"} {
		text := strings.Repeat(part, (1<<20)/len(part))
		if rest, directives, shortcuts := reg.Extract(text); rest != text || len(directives)+len(shortcuts) > 0 {
			t.Errorf("%q: %q %q", part, names(directives), names(shortcuts))
		}
	}
}
