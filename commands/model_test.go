package commands_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/commands"
	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/llm"
	"understudy/session"
)

// fallenBack is a session with everything that a choice has to clear.
func fallenBack(s *session.Session) {
	s.Override = session.Override{Model: mustRef("beta/b1"), Source: session.SourceAuto, Origin: mustRef("alpha/a1")}
	s.Pin = session.Pin{Profile: "alpha:p1", Source: session.SourceAuto}
	s.Notice = session.Pair{Selected: mustRef("alpha/a1"), Active: mustRef("beta/b1"), Reason: "rate limit"}
}

func TestModelSelects(t *testing.T) {
	const strict = "🧠 Model for this session: "
	for _, x := range []struct {
		args    string
		model   string // "" = the configured default
		profile llm.ProfileID
		reply   string
	}{
		{"gamma/g1", "gamma/g1", "", strict + "gamma/g1 (strict - no fallbacks)."},
		{"GAMMA/g1", "gamma/g1", "", strict + "gamma/g1 (strict - no fallbacks)."},
		{"gee", "gamma/g1", "", strict + "gamma/g1 (strict - no fallbacks)."},
		{"Gee -s", "gamma/g1", "", strict + "gamma/g1 (strict - no fallbacks)."},
		{"-s gee", "gamma/g1", "", strict + "gamma/g1 (strict - no fallbacks)."},
		{"b1", "beta/b1", "", strict + "beta/b1 (strict - no fallbacks)."},
		{"2", "beta/b1", "", strict + "beta/b1 (strict - no fallbacks)."},
		{"2@main", "beta/b1", "beta:main", strict + "beta/b1 (strict - no fallbacks) using profile beta:main."},
		{"gee@p2", "gamma/g1", "gamma:p2", strict + "gamma/g1 (strict - no fallbacks) using profile gamma:p2."},
		{"gamma/g1@gamma:p2", "gamma/g1", "gamma:p2", strict + "gamma/g1 (strict - no fallbacks) using profile gamma:p2."},
		{"gamma/g2@2026", "gamma/g2@2026", "", strict + "gamma/g2@2026 (strict - no fallbacks)."},
		{"gamma/g2@2026@p1", "gamma/g2@2026", "gamma:p1", strict + "gamma/g2@2026 (strict - no fallbacks) using profile gamma:p1."},
		{"alpha/a2@alpha:me@example.com", "alpha/a2", "alpha:me@example.com", strict + "alpha/a2 (strict - no fallbacks) using profile alpha:me@example.com."},
		{"brand-new", "alpha/brand-new", "", strict + "alpha/brand-new (strict - no fallbacks). (I assumed the provider alpha.)"},
		{"model-s", "alpha/model-s", "", strict + "alpha/model-s (strict - no fallbacks). (I assumed the provider alpha.)"},
		{"default", "", "", "🧠 Using the configured default: alpha/a1."},
		{"DEFAULT -s", "", "", "🧠 Using the configured default: alpha/a1."},
		{"alpha/a1", "", "", "🧠 Using the configured default: alpha/a1."},
		{"1", "", "", "🧠 Using the configured default: alpha/a1."},
		{"default@p1", "", "alpha:p1", "🧠 Using the configured default: alpha/a1 using profile alpha:p1."},
		{"default@alpha:me@example.com", "", "alpha:me@example.com", "🧠 Using the configured default: alpha/a1 using profile alpha:me@example.com."},
		{"alpha/a1@me@example.com", "", "alpha:me@example.com", "🧠 Using the configured default: alpha/a1 using profile alpha:me@example.com."},
	} {
		t.Run(x.args, func(t *testing.T) {
			w, c := newWorld(t), direct()
			want := w.set(c, fallenBack)
			want.Override, want.Pin, want.Notice, want.NoticeSince = session.Override{}, session.Pin{}, session.Pair{}, time.Time{}
			if x.model != "" {
				want.Override = session.Override{Model: mustRef(x.model), Source: session.SourceUser}
			}
			if x.profile != "" {
				want.Pin = session.Pin{Profile: x.profile, Source: session.SourceUser}
			}
			w.says(c, "/model "+x.args, x.reply)
			if diff := cmp.Diff(want, w.row(c)); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

func TestModelRefuses(t *testing.T) {
	for args, reply := range map[string]string{
		"delta/d1":            "Model override \"delta/d1\" is not allowed by agents.defaults.modelPolicy.allow.\n/models lists what is.",
		"nowhere/x":           "I don't know \"nowhere/x\". Try /models.",
		"@p1":                 "I don't know \"@p1\". Try /models.",
		"0":                   "There is no number 0 in the list. /model shows it.",
		"-3":                  "There is no number -3 in the list. /model shows it.",
		"99@p1":               "There is no number 99 in the list. /model shows it.",
		"2@nobody":            "I don't know the profile `beta:nobody`.",
		"gee@nobody":          "I don't know the profile `gamma:nobody`.",
		"gee@gamma:no@body":   "I don't know the profile `gamma:no@body`.",
		"gee@alpha:p1":        "The profile belongs to another provider.",
		"default@gamma:p1":    "The profile belongs to another provider.",
		"default@nobody":      "I don't know the profile `alpha:nobody`.",
		"default@2026":        "I don't know the profile \"2026\".",
		"default@":            "I don't know the profile \"\".",
		"delta/d1@delta:none": "I don't know the profile `delta:none`.",
	} {
		t.Run(args, func(t *testing.T) {
			w, c := newWorld(t), direct()
			before := w.set(c, fallenBack)
			w.lanes[c.Key] = session.LaneState{Active: true}
			w.clock.Advance(noon.Add(1))
			w.says(c, "/model "+args, reply)
			if diff := cmp.Diff(before, w.row(c)); diff != "" {
				t.Errorf("a refusal changed the row:\n%s", diff)
			}
		})
	}
}

func TestModelWarnsOfAMissingCredential(t *testing.T) {
	w, c := newWorld(t), direct()
	w.models.health.Profiles = nil
	w.says(c, "/model gee", "🧠 Model for this session: gamma/g1 (strict - no fallbacks).\n⚠️ There is no usable credential for gamma yet.")
}

func TestModelWithoutAnyModel(t *testing.T) {
	w, c := newWorld(t), direct()
	w.models.cfg = newModels(t, "{}").cfg
	w.says(c, "/model default", "No default model is configured. /models lists what there is.")
	w.says(c, "/models", "No model is configured yet.")
	w.says(c, "/model status", "No model is configured yet.")
	w.says(c, "/new", "🆕 New session.")
	if text := w.run(c, "/status").Text; !strings.Contains(text, "🧠 Model: none is configured") {
		t.Error(text)
	}
}

// TestModelDuringATurn runs over real lanes: a change marks the running turn, and only that.
func TestModelDuringATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		real := session.NewLanes(session.LaneConfig{}, clock.Clock{}, nil)
		w := newWorld(t, func(d *commands.Deps) { d.Lanes = real })
		c := direct()
		submit := func(task session.Task) {
			if err := real.Submit(c.Key, task); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		submit(session.Task{Run: func(ctx context.Context) { <-ctx.Done() }})
		w.says(c, "/model gee", "🧠 Model for this session: gamma/g1 (strict - no fallbacks).\n🔀 gamma/g1 will be used from the next step.")
		if s := w.row(c); !s.SwitchPending {
			t.Error("the running turn is not told")
		}
		w.says(c, "/model default", "🧠 Using the configured default: alpha/a1.\n🔀 alpha/a1 will be used from the next step.")
		w.says(c, "/stop", "⏹ Stopped.")
		synctest.Wait()
		w.set(c, func(s *session.Session) { s.SwitchPending = false })
		w.says(c, "/model gee", "🧠 Model for this session: gamma/g1 (strict - no fallbacks).")
		// A command in the lane is not a turn that could switch.
		submit(session.Task{Run: func(context.Context) { w.says(c, "/new beta/b1", "🆕 New session on beta/b1.") }})
		if s := w.row(c); s.SwitchPending || s.Override.Model != mustRef("beta/b1") {
			t.Errorf("%+v", s)
		}
	})
}

// TestThreadsThatRunTakeTheChoiceOfTheirRoom has three threads with a turn: one without a choice of its own,
// one with, and one that went back to the default.
func TestThreadsThatRunTakeTheChoiceOfTheirRoom(t *testing.T) {
	var told []string
	w := newWorld(t, func(d *commands.Deps) { d.Switched = func(key string) { told = append(told, key) } })
	room := group()
	thread := func(id, choice string) commands.Call {
		c := topic()
		c.Key, c.To.Thread = room.Key+":topic:"+id, id
		w.row(c)
		if choice != "" {
			w.run(c, "/model "+choice)
		}
		return c
	}
	free, own, back, quiet := thread("1", ""), thread("2", "beta/b1"), thread("3", "default"), thread("4", "")
	for _, c := range []commands.Call{free, own, back} {
		w.lanes[c.Key] = session.LaneState{Active: true, Since: noon}
	}
	w.says(room, "/model gee", "🧠 Model for this session: gamma/g1 (strict - no fallbacks).")
	if diff := cmp.Diff([]string{free.Key}, told); diff != "" {
		t.Error(diff)
	}
	for _, c := range []commands.Call{room, free, own, back, quiet} {
		if s := w.row(c); s.SwitchPending != (c.Key == free.Key) {
			t.Errorf("%s: pending %v", c.Key, s.SwitchPending)
		}
	}
}

// TestWhatIsSelectedIsAlwaysListed covers a model that no list names: it moves no number, and threads of
// the conversation see it too.
func TestWhatIsSelectedIsAlwaysListed(t *testing.T) {
	w, room := newWorld(t), group()
	w.run(room, "/model gamma/unlisted")
	if text := w.run(room, "/models").Text; !strings.HasSuffix(text, "\n• `gamma/unlisted` — selected") || !strings.HasPrefix(text, "• `alpha/a1` — primary\n") {
		t.Error(text)
	}
	for _, c := range []commands.Call{room, topic()} {
		list := w.run(c, "/model")
		if !strings.Contains(list.Text, "\n6. `gamma/unlisted` — selected\n") {
			t.Error(list.Text)
		}
		if last := list.Buttons[len(list.Buttons)-1]; !last.Chosen || last.Command != "/model gamma/unlisted" {
			t.Errorf("%+v", last)
		}
	}
	w.says(topic(), "/model 6", "🧠 Model for this session: gamma/unlisted (strict - no fallbacks).")
	if list := w.reg.Complete(t.Context(), room, "model", "model", "unl"); len(list) != 1 {
		t.Errorf("%v", list)
	}
}

func TestModelListNumbersAreStable(t *testing.T) {
	w, c := newWorld(t), direct()
	reply := w.run(c, "/model")
	golden(t, "model_list", reply.Text)
	w.says(c, "/model list", reply.Text)
	n := 0
	for line := range strings.Lines(reply.Text) {
		number, rest, ok := strings.Cut(line, ". `")
		if !ok {
			continue
		}
		ref, _, _ := strings.Cut(rest, "`")
		n++
		if text := w.run(c, "/model "+number).Text; !strings.Contains(text, ": "+ref) {
			t.Errorf("number %s is %s, but chose: %s", number, ref, text)
		}
		w.run(c, "/model default")
	}
	var labels []string
	for _, b := range reply.Buttons {
		ref, _, _ := strings.Cut(b.Label, " ")
		labels = append(labels, ref)
		if b.Command != "/model "+ref || !strings.HasPrefix(ref, b.Group+"/") || b.Chosen != (ref == "alpha/a1") {
			t.Errorf("%+v", b)
		}
	}
	if n != 5 || len(labels) != n || slices.Contains(labels, "delta/d1") {
		t.Errorf("%d lines, buttons %v", n, labels)
	}
}

func TestModelListOfAPinnedSession(t *testing.T) {
	w, c := newWorld(t), direct()
	w.run(c, "/model gee@p2")
	w.models.health.Health = limited()
	golden(t, "model_list_pinned", w.run(c, "/model").Text)
}

func TestModels(t *testing.T) {
	w, c := newWorld(t), direct()
	golden(t, "models", w.run(c, "/models").Text)
	w.says(c, "/models BETA", "• `beta/b1` — fallback 1")
	w.says(c, "/models beta 7", "• `beta/b1` — fallback 1")
	w.says(c, "/models delta", "There is no model of \"delta\" here. /models shows all.")

	var b strings.Builder
	b.WriteString("agents: {defaults: {model: many/m1}}\nmodels: {providers: {many: {baseUrl: 'http://m.test', models: [")
	for i := range 45 {
		b.WriteString("{id: m" + strings.Repeat("x", i) + "1}, ")
	}
	w.models.cfg = newModels(t, b.String()+"]}}}\n").cfg
	first, last := w.run(c, "/models").Text, w.run(c, "/models many 3").Text
	if !strings.HasSuffix(first, "\nPage 1 of 3; the next one: /models 2") || strings.Count(first, "•") != 20 {
		t.Error(first)
	}
	if !strings.HasSuffix(last, "\nPage 3 of 3; the next one: /models many 1") || strings.Count(last, "•") != 5 {
		t.Error(last)
	}
	if list := w.run(c, "/model"); len(list.Buttons) != 45 || !strings.Contains(list.Text, "… /models shows all.") {
		t.Errorf("%d buttons: %s", len(list.Buttons), list.Text)
	}
}

func TestModelStatus(t *testing.T) {
	w := newWorld(t, func(d *commands.Deps) {
		d.Endpoint = func(id string) (host, api string) { return id + ".test", "openai-completions" }
	})
	w.models.health.Health = limited()
	w.models.health.Profiles = append(w.models.health.Profiles,
		policy.Profile{ID: "gamma:old", Kind: llm.KindToken, HasSecret: true, Expires: noon.Add(-1)},
		policy.Profile{ID: "gamma:empty", Kind: llm.KindAPIKey})
	golden(t, "model_status", w.run(direct(), "/model status").Text)
	w.says(group(), "/model status", "Only the bot owner can see credentials here.")

	broken := newWorld(t, func(d *commands.Deps) {
		d.Health = func(context.Context, string) (policy.Snapshot, error) {
			return policy.Snapshot{}, errors.New("no disk")
		}
	})
	broken.says(direct(), "/model status", "⚠️ The stored credentials cannot be read; /status says more.")
	broken.says(direct(), "/failover", "⚠️ The stored credentials cannot be read; /status says more.")
	if text := broken.run(direct(), "/model").Text; strings.Contains(text, "no credential") {
		t.Errorf("what cannot be known is claimed: %s", text)
	}
}
