package commands_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"understudy/commands"
	"understudy/session"
)

func TestMatch(t *testing.T) {
	reg := commands.New(commands.Deps{})
	for _, x := range []struct{ text, name, args string }{
		{"/status", "status", ""},
		{"  /STATUS  ", "status", ""},
		{"/think: high", "think", "high"},
		{"/think:high", "think", "high"},
		{"/think :high", "think", "high"},
		{"/t high", "think", "high"},
		{"/model\topenai/gpt-5.5", "model", "openai/gpt-5.5"},
		{"/model\u00a0ollama/qwen3.5:27b", "model", "ollama/qwen3.5:27b"},
		{"/id", "whoami", ""},
		{"/new one\ntwo", "new", "one\ntwo"},
		{"/new\nhello", "new", "hello"},
		{"/compact " + strings.Repeat("x", 5000), "compact", strings.Repeat("x", 5000)},
		{"/model " + strings.Repeat("x", 4096), "model", strings.Repeat("x", 4096)},
		{"/model " + strings.Repeat("x", 4097), "model", ""}, // is refused
		{"/model one\ntwo", "model", ""},
		{"/think high\ntwo", "", ""}, // a message with a directive
		{"/statuses", "", ""},
		{"/etc/passwd", "", ""},
		{"/ status", "", ""},
		{"/", "", ""},
		{"", "", ""},
		{"status", "", ""},
		{"see /status", "", ""},
		{"/status and more", "", ""}, // a message with a shortcut
		{"/think high please", "", ""},
		{"/think please", "think", "please"},
		{"/help model", "help", "model"},
		{"/help me please", "", ""},
		{"/queue collect cap:3", "queue", "collect cap:3"},
		{"/queue collect these", "", ""},
		{"//status", "", ""},
		{"/sim lead", "", ""}, // there are no offline models
	} {
		inv, ok := reg.Match(x.text)
		if ok != (x.name != "") || inv.Spec.Name != x.name || inv.Args != x.args {
			t.Errorf("%.40q: %v %q %q", x.text, ok, inv.Spec.Name, inv.Args)
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, s := range []string{"/model gee", "/think: high", "/new a\nb", "/", "/é", "/model:\xff", " /ID\u2003x", "/sim", "/STOP\r\n"} {
		f.Add(s)
	}
	reg := commands.New(commands.Deps{Sim: func(context.Context, string, string) (string, error) { return "", nil }})
	f.Fuzz(func(t *testing.T, text string) {
		inv, ok := reg.Match(text)
		if !ok {
			if inv.Spec.Name != "" || inv.Args != "" {
				t.Errorf("no command, but %+v", inv)
			}
			return
		}
		if inv.Args != strings.TrimSpace(inv.Args) || !strings.Contains(text, inv.Args) {
			t.Errorf("arguments %q", inv.Args)
		}
		if !inv.Spec.Long && strings.ContainsAny(inv.Args, "\r\n") {
			t.Errorf("/%s took several lines", inv.Spec.Name)
		}
		again, ok := reg.Match("/" + inv.Spec.Name + ": " + inv.Args)
		if !ok || again.Spec.Name != inv.Spec.Name || again.Args != inv.Args {
			t.Errorf("%q became %q", inv.Args, again.Args)
		}
	})
}

func TestHelp(t *testing.T) {
	w := newWorld(t, furnish(t))
	golden(t, "help", w.run(direct(), "/help").Text)
	golden(t, "help_model", w.run(direct(), "/help model").Text)
	golden(t, "commands", w.run(direct(), "/commands").Text)
	golden(t, "commands_group", w.run(group(), "/commands").Text)
	for _, reg := range []*commands.Registry{w.reg, newWorld(t).reg, newWorld(t, furnish(t), func(d *commands.Deps) { d.Sim = nil }).reg} {
		help, _ := reg.Match("/help")
		text := reg.Run(t.Context(), help, direct()).Text
		if n := strings.Count(text, "\n") + 1; n > 10 || !strings.HasSuffix(text, "\nFull list: /commands") {
			t.Errorf("help has %d lines: %s", n, text)
		}
	}
	w.says(direct(), "/help /ID", w.run(direct(), "/help whoami").Text)
	w.says(direct(), "/help nothing", "There is no command \"/nothing\". Full list: /commands")
	w.says(group(), "/help failover", "There is no command \"/failover\". Full list: /commands")
}

func TestReferenceIsFresh(t *testing.T) {
	all := newWorld(t, furnish(t)).reg
	compareFile(t, filepath.Join("..", "docs", "commands.md"), commands.Markdown(all.Specs()))
}

// TestSpecsAreComplete holds every command to what menus and documents need.
func TestSpecsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range newWorld(t, furnish(t)).reg.Specs() {
		for _, name := range append([]string{s.Name}, s.Aliases...) {
			if seen[name] || name != strings.ToLower(name) || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" || len(name) > 32 {
				t.Errorf("/%s is taken twice, or cannot stand in a menu", name)
			}
			seen[name] = true
		}
		if s.Help == "" || strings.HasSuffix(s.Help, ".") || utf8.RuneCountInString(s.Help) > 100 || s.About == "" || s.Group == "" {
			t.Errorf("/%s is not described well: %q", s.Name, s.Help)
		}
		checkArgs(t, s)
		// Only what ends the conversation ends the answer that is being written.
		stops, lane := s.Name == "new" || s.Name == "reset", s.Name == "new" || s.Name == "reset" || s.Name == "compact"
		if s.Stops != stops || s.Lane != lane {
			t.Errorf("/%s: lane %v, stops %v", s.Name, s.Lane, s.Stops)
		}
	}
}

// checkArgs holds arguments to what platforms with fields take.
func checkArgs(t *testing.T, s commands.Spec) {
	t.Helper()
	names, optional := map[string]bool{}, false
	for _, a := range s.Args {
		if names[a.Name] || strings.Trim(a.Name, "abcdefghijklmnopqrstuvwxyz") != "" || a.Name == "" || len(a.Name) > 32 {
			t.Errorf("/%s: the argument %q cannot be a field", s.Name, a.Name)
		}
		if a.Help == "" || utf8.RuneCountInString(a.Help) > 100 || strings.HasSuffix(a.Help, ".") || len(a.Choices) > 25 {
			t.Errorf("/%s: the argument %s is not described well", s.Name, a.Name)
		}
		if a.Required && optional {
			t.Errorf("/%s: %s is required, but stands behind one that is not", s.Name, a.Name)
		}
		names[a.Name], optional = true, optional || !a.Required
	}
	if (s.Usage == "") != (len(s.Args) == 0) || utf8.RuneCountInString(s.Usage) > 120 {
		t.Errorf("/%s %s", s.Name, s.Usage)
	}
}

// TestRefusalsChangeNothing tries commands made of everything that can stand in one: whatever is not
// confirmed leaves the session as it was, and whatever is confirmed obeys the rules.
func TestRefusalsChangeNothing(t *testing.T) {
	w, c := newWorld(t), direct()
	confirmed := []string{"🧠 Model for this session: ", "🧠 Using the configured default: ", "🆕 New session", "Thinking level set", "Thinking disabled"}
	word := rapid.SampledFrom([]string{
		"default", "list", "status", "gee", "gamma/g1", "gamma/g2@2026", "alpha/a1", "alpha/a2", "beta/b1", "delta/d1", "nowhere/x", "g1",
		"1", "2", "6", "0", "-1", "high", "off", "-s", "hello", "é",
	})
	tail := rapid.SampledFrom([]string{"", "", "", "@p1", "@p2", "@gamma:p2", "@alpha:p1", "@alpha:me@example.com", "@me@example.com", "@nobody", "@", "@2026", " x", " -s"})
	name := rapid.SampledFrom([]string{"/model", "/model", "/model", "/new", "/reset", "/think", "/models", "/status", "/why", "/failover", "/whoami"})
	rapid.Check(t, func(t *rapid.T) {
		before := w.set(c, func(s *session.Session) {
			s.Override, s.Pin, s.Notice, s.Think, s.SwitchPending = session.Override{}, session.Pin{}, session.Pair{}, "low", false
			switch rapid.IntRange(0, 3).Draw(t, "state") {
			case 1:
				fallenBack(s)
			case 2:
				s.Select(mustRef("gamma/g1"), "gamma:p1", false)
			case 3:
				s.SelectDefault("alpha:p1", false)
			}
		})
		w.lanes[c.Key] = session.LaneState{Active: rapid.Bool().Draw(t, "running")}
		w.clock.Advance(w.clock.Now().Add(1e6))
		c.Owner = rapid.Bool().Draw(t, "owner")
		text := name.Draw(t, "name") + " " + word.Draw(t, "word") + tail.Draw(t, "tail")
		reply, after := w.said(c, text), w.row(c)
		for _, prefix := range confirmed {
			if strings.HasPrefix(reply, prefix) {
				checkRow(t, w, text, after)
				return
			}
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("%s said %q, but changed\n%s", text, reply, diff)
		}
	})
}

// said is the reply to a text, be it a command or a message with directives.
func (w *world) said(c commands.Call, text string) string {
	if inv, ok := w.reg.Match(text); ok {
		return w.reg.Run(w.t.Context(), inv, c).Text
	}
	rest, directives, _ := w.reg.Extract(text)
	_, reply := w.reg.Apply(w.t.Context(), directives, c, rest == "")
	return reply.Text
}

func checkRow(t *rapid.T, w *world, text string, s session.Session) {
	if o := s.Override; !o.Model.IsZero() && o.Source != session.SourceAuto && !w.models.Allowed(o.Model) {
		t.Fatalf("%s selected %s", text, o.Model)
	}
	selected := s.Override.Model
	if selected.IsZero() {
		selected = w.models.Agent("main").Primary
	}
	if p := s.Pin; p.Source == session.SourceUser && (p.Profile.Provider() != selected.Provider || !w.models.exists(p.Profile)) {
		t.Fatalf("%s pinned %s for %s", text, p.Profile, selected)
	}
	if !strings.HasPrefix(text, "/think") && (s.Notice != (session.Pair{}) || s.Override.Auto()) {
		t.Fatalf("%s left %+v, %+v", text, s.Override, s.Notice)
	}
}

func TestSessionStatusTool(t *testing.T) {
	w, c := newWorld(t), direct()
	w.models.health.Health = limited()
	before := w.row(c)
	tool := w.reg.SessionStatus()
	var chosen []commands.Chosen
	call := func(input string) (string, error) {
		return tool.Run(t.Context(), commands.ToolUse{
			Agent: "main", Key: c.Key, Input: []byte(input), By: []commands.Call{c}, Chosen: func(x commands.Chosen) { chosen = append(chosen, x) },
		})
	}

	for _, input := range []string{"", "{}", "null"} {
		text, err := call(input)
		if err != nil || !strings.Contains(text, "🧠 Model: alpha/a1 (default)") || strings.Contains(text, "alpha:p1") || strings.Contains(text, c.Key) {
			t.Errorf("%q: %s, %v", input, text, err)
		}
	}
	for _, input := range []string{`{"model":"delta/d1"}`, `{"model":"nowhere/x"}`, `{"model":3}`, `[`} {
		if text, err := call(input); err == nil || text != "" {
			t.Errorf("%q: %s", input, text)
		}
	}
	if diff := cmp.Diff(before, w.row(c)); diff != "" {
		t.Errorf("looking and refusing changed the row:\n%s", diff)
	}
	w.lanes[c.Key] = session.LaneState{Active: true}
	text, err := call(`{"model":"gee"}`)
	if err != nil || !strings.HasPrefix(text, "🧠 Model for this session: gamma/g1 (strict - no fallbacks).") {
		t.Errorf("%s, %v", text, err)
	}
	got := w.row(c)
	if got.Override != (session.Override{Model: mustRef("gamma/g1"), Source: session.SourceUser}) || !got.SwitchPending || got.Address != c.To {
		t.Errorf("%+v", got)
	}
	for _, input := range []string{`{"model":"gamma/g1"}`, `{"model":"default"}`, `{"model":"alpha/a1"}`} {
		if _, err := call(input); err != nil {
			t.Errorf("%s: %v", input, err)
		}
	}
	want := []commands.Chosen{{Ref: mustRef("gamma/g1")}, {Ref: mustRef("alpha/a1"), Default: true, Before: mustRef("gamma/g1")}}
	if diff := cmp.Diff(want, chosen); diff != "" {
		t.Errorf("what changed is not told once (-want +got):\n%s", diff)
	}
	if _, err := tool.Run(t.Context(), commands.ToolUse{Agent: "main", Key: "nobody"}); err == nil {
		t.Error("a session that is not there has a status")
	}
}

// A model may do no more than everybody whose words it may follow: the tool is no way around
// commands.allowFrom.
func TestTheToolSelectsOnlyForThoseWhoMay(t *testing.T) {
	w, c := newWorld(t), direct()
	w.deps.Authorised = func(c commands.Call) bool { return c.In.Sender.ID != "guest" }
	w.reg = commands.New(w.deps)
	by := func(id string) commands.Call { x := c; x.Owner, x.In.Sender.ID = false, id; return x }
	owner := by("guest") // owners need stand in no list
	owner.Owner = true
	before := w.row(c)
	run := func(input string, by ...commands.Call) error {
		_, err := w.reg.SessionStatus().Run(t.Context(), commands.ToolUse{Agent: "main", Key: c.Key, Input: []byte(input), By: by})
		return err
	}
	for name, by := range map[string][]commands.Call{
		"nobody": nil, "a guest": {by("guest")}, "a guest behind somebody else": {by("a"), by("guest")}, "a guest beside the owner": {owner, by("guest")},
	} {
		var refused *commands.Refusal
		if err := run(`{"model":"gamma/g1"}`, by...); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
		if err := run(`{}`, by...); err != nil {
			t.Errorf("%s may not look: %v", name, err)
		}
	}
	if diff := cmp.Diff(before, w.row(c)); diff != "" {
		t.Errorf("a refusal changed the row:\n%s", diff)
	}
	if err := run(`{"model":"gamma/g1"}`, owner, by("a")); err != nil || w.row(c).Override.Model != mustRef("gamma/g1") {
		t.Errorf("%v", err)
	}
}
