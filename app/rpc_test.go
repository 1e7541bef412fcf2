package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/app"
	"understudy/gateway"
	"understudy/internal/sqlite"
	"understudy/provider/sim"
	"understudy/session"
)

// scripts is a bot that programs talk to.
type scripts struct {
	t      *testing.T
	o      app.Options
	state  string
	sim    *sim.Sim
	client *gateway.ControlClient
}

func newScripts(t *testing.T, config string) *scripts {
	t.Helper()
	return newScriptsWith(t, config, func(*app.Options) {})
}

func newScriptsWith(t *testing.T, config string, change func(*app.Options)) *scripts {
	t.Helper()
	s := &scripts{t: t, sim: sim.New(sim.Config{Pause: -1})}
	s.o, s.state = beside(t, config, func(o *app.Options) {
		o.Sim = s.sim
		change(o)
	})
	s.client = gateway.NewControlClient(filepath.Join(s.state, gateway.ControlSocket))
	return s
}

// call calls a method and returns its result as JSON, or the error as "code message".
func (s *scripts) call(method, params string) string {
	s.t.Helper()
	var out json.RawMessage
	err := s.client.CallRPC(s.t.Context(), method, json.RawMessage(params), &out, nil)
	var bad *gateway.RPCError
	switch {
	case errors.As(err, &bad):
		return fmt.Sprintf("%d %s", bad.Code, bad.Message)
	case err != nil:
		s.t.Fatal(err)
	}
	return string(out)
}

func (s *scripts) expect(method, params string, wants ...string) {
	s.t.Helper()
	got := s.call(method, params)
	for _, want := range wants {
		if !strings.Contains(got, want) {
			s.t.Errorf("%s %s: %s\nwithout %s", method, params, got, want)
		}
	}
}

// until waits for something that nothing else tells.
func (s *scripts) until(cond func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-ctx.Done():
			s.t.Fatal("it did not happen")
		}
	}
}

func (s *scripts) session(key string) app.SessionInfo {
	s.t.Helper()
	var v app.SessionView
	if err := s.client.CallRPC(s.t.Context(), "sessions.get", map[string]any{"session": key}, &v, nil); err != nil {
		s.t.Fatal(err)
	}
	return v.Session
}

func (s *scripts) agent(a app.AgentTurn) (int, string) {
	s.t.Helper()
	return run(func(std app.Std) int { return app.Agent(s.t.Context(), s.o, std, a) })
}

func TestOneTurnFromAScript(t *testing.T) {
	s := newScripts(t, "")
	if exit, text := s.agent(app.AgentTurn{Session: "nightly", Message: "good evening"}); exit != app.ExitOK || !strings.Contains(text, "sim/lead") {
		t.Errorf("exit %d, %s", exit, text)
	}
	exit, text := s.agent(app.AgentTurn{Session: "nightly", Message: "and again", JSON: true})
	var r app.TurnResult
	if err := json.Unmarshal([]byte(text), &r); err != nil || exit != app.ExitOK {
		t.Fatalf("exit %d, %v, %s", exit, err, text)
	}
	if r.Status != "answered" || r.Session != "agent:main:cli:nightly" || r.Model != "sim/lead" || !strings.Contains(r.Text, "and again") || r.Usage.Input == 0 {
		t.Errorf("%+v", r)
	}

	// A model for one turn is strict, and leaves no trace.
	exit, text = s.agent(app.AgentTurn{Session: "nightly", Message: "who are you?", Model: "sim/understudy", JSON: true})
	if err := json.Unmarshal([]byte(text), &r); err != nil || exit != app.ExitOK || r.Model != "sim/understudy" {
		t.Errorf("exit %d, %v, %s", exit, err, text)
	}
	if i := s.session("nightly"); i.Model != "" || i.Profile != "" || i.Fallback != nil {
		t.Errorf("the session remembers the model: %+v", i)
	}
	if err := s.sim.Fail(sim.ModelUnderstudy, "auth", 0); err != nil {
		t.Fatal(err)
	}
	exit, text = s.agent(app.AgentTurn{Session: "nightly", Message: "still there?", Model: "sim/understudy"})
	if exit != app.ExitFailed || !strings.Contains(text, "understudy cannot answer") {
		t.Errorf("a strict model that fails: exit %d, %s", exit, text)
	}
	s.sim.OK(sim.ModelUnderstudy)

	for name, a := range map[string]app.AgentTurn{
		"no such session":  {Session: "agent:main:telegram:direct:1", Message: "x"},
		"no such model":    {Session: "nightly", Message: "x", Model: "sim/"},
		"a profile":        {Session: "nightly", Message: "x", Model: "sim/lead@sim:other"},
		"too long":         {Session: "nightly", Message: strings.Repeat("x", 65<<10)},
		"no such agent":    {Session: "agent:other:cli:x", Message: "x"},
		"an unusable name": {Session: strings.Repeat("x", 600), Message: "x"},
	} {
		if exit, text := s.agent(a); exit != app.ExitFailed || !strings.HasPrefix(text, "bot: ") {
			t.Errorf("%s: exit %d, %s", name, exit, text)
		}
	}
}

func TestAFallbackIsToldBesideTheAnswer(t *testing.T) {
	s := newScripts(t, "")
	if err := s.sim.Fail(sim.ModelLead, "overloaded", 0); err != nil {
		t.Fatal(err)
	}
	var out, side bytes.Buffer
	exit := app.Agent(t.Context(), s.o, app.Std{Out: &out, Err: &side}, app.AgentTurn{Session: "x", Message: "hello"})
	if exit != app.ExitOK || !strings.Contains(out.String(), "sim/understudy") || strings.Contains(out.String(), "Fallback") {
		t.Errorf("exit %d, answer: %s", exit, out.String())
	}
	if !strings.Contains(side.String(), "sim/understudy") {
		t.Errorf("beside the answer: %s", side.String())
	}
	if i := s.session("x"); i.Fallback == nil || i.Fallback.Active != "sim/understudy" || i.Title != "hello" {
		t.Errorf("%+v", i)
	}

	// A model for one turn changes nothing about it, and is no news.
	side.Reset()
	exit = app.Agent(t.Context(), s.o, app.Std{Out: &out, Err: &side}, app.AgentTurn{Session: "x", Message: "hello", Model: "sim/understudy"})
	if i := s.session("x"); exit != app.ExitOK || i.Fallback == nil || side.Len() > 0 {
		t.Errorf("exit %d, beside the answer: %s, %+v", exit, side.String(), i)
	}
}

// TestACallerWhoLeavesStopsItsTurn leaves while a model is silent, and while a turn waits behind it.
func TestACallerWhoLeavesStopsItsTurn(t *testing.T) {
	s := newScripts(t, "")
	if err := s.sim.Fail(sim.ModelLead, "hang", 0); err != nil {
		t.Fatal(err)
	}
	begin := func(message string, events func(json.RawMessage)) (leave func(), ended chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		ended = make(chan error, 1)
		go func() {
			ended <- s.client.CallRPC(ctx, "turn.run", map[string]string{"session": "x", "message": message}, nil, events)
		}()
		return cancel, ended
	}
	leaveFirst, first := begin("one", nil)
	s.until(func() bool { return strings.Contains(s.call("sessions.list", `{}`), `"running":true`) })
	leaveSecond, second := begin("two", func(json.RawMessage) {})
	s.until(func() bool { return s.session("x").Waiting == 1 })

	leaveSecond()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s.until(func() bool { return s.session("x").Waiting == 0 })
	if !s.session("x").Running {
		t.Error("the turn of another caller was stopped")
	}
	leaveFirst()
	<-first
	s.until(func() bool { return !s.session("x").Running })
	s.sim.OK(sim.ModelLead)
	s.expect("turn.run", `{"session":"x","message":"three"}`, `"status":"answered"`)
}

func TestPatchesAreTheCommands(t *testing.T) {
	s := newScripts(t, "")
	s.expect("turn.run", `{"session":"x","message":"hello"}`, `"status":"answered"`)
	const key = `"session":"agent:main:cli:x"`
	s.expect("sessions.patch", `{`+key+`,"model":"sim/understudy","think":"High","queue":"collect debounce:2s"}`,
		`"model":"sim/understudy"`, `"think":"high"`, `"queue":"collect`, "strict - no fallbacks", "Thinking level set to high")
	s.expect("turn.run", `{"session":"x","message":"who are you?"}`, `"model":"sim/understudy"`)
	for params, want := range map[string]string{
		`{` + key + `}`:                                     "-32602 params.model: there is nothing to change",
		`{` + key + `,"mode":"x"}`:                          "-32602 params.mode: there is no such parameter",
		`{"model":"sim/lead"}`:                              "-32602 params.session: is missing",
		`{` + key + `,"think":"hard"}`:                      "-32602 params.think: must be one of off, minimal",
		`{` + key + `,"think":""}`:                          "-32602 params.think: must be one of",
		`{` + key + `,"queue":"sometimes"}`:                 "-32602 params.queue: ",
		`{` + key + `,"queue":"collect\n/new"}`:             "-32602 params.queue: ",
		`{` + key + `,"model":"nobody/x"}`:                  "-32002 ",
		`{` + key + `,"model":"nobody/x","think":"low"}`:    "-32002 ",
		`{` + key + `,"model":"sim/lead","think":"hard"}`:   "-32602 params.think",
		`{` + key + `,"profile":"other:a"}`:                 "-32002 ",
		`{` + key + `,"model":""}`:                          "-32602 params.model",
		`{"session":"agent:main:cli:y","model":"sim/lead"}`: "-32001 there is no such session",
	} {
		s.expect("sessions.patch", params, want)
	}
	if i := s.session("x"); i.Model != "sim/understudy" || i.Think != "high" {
		t.Errorf("a refused patch changed something: %+v", i)
	}
	s.expect("sessions.patch", `{`+key+`,"model":"default","think":"default","queue":"default"}`, "configured default")
	if i := s.session("x"); i.Model != "" || i.Think != "" || i.Queue != "" {
		t.Errorf("%+v", i)
	}
}

func TestSessionsFromTheCommandLine(t *testing.T) {
	s := newScripts(t, "")
	ctx := t.Context()
	verb := func(want int, f func(std app.Std) int, contains ...string) string {
		t.Helper()
		exit, text := run(f)
		if exit != want {
			t.Errorf("exit %d: %s", exit, text)
		}
		for _, c := range contains {
			if !strings.Contains(text, c) {
				t.Errorf("%q is not in: %s", c, text)
			}
		}
		return text
	}
	verb(app.ExitOK, func(std app.Std) int { return app.SessionsList(ctx, s.o, std, "", 100, false) }, "Nobody has talked")
	for _, m := range []string{"the first question", `the second\u001b[2J one`} {
		s.expect("turn.run", `{"session":"x","message":"`+m+`"}`, `"status":"answered"`)
	}
	verb(app.ExitOK, func(std app.Std) int { return app.SessionsList(ctx, s.o, std, "main", 10, false) }, "agent:main:cli:x", "the first question")
	verb(app.ExitOK, func(std app.Std) int { return app.SessionsShow(ctx, s.o, std, "x", 2, false) }, "the second[2J one", "sim/lead")
	verb(app.ExitUsage, func(std app.Std) int { return app.SessionsShow(ctx, s.o, std, "x", 1000, false) })
	verb(app.ExitFailed, func(std app.Std) int { return app.SessionsShow(ctx, s.o, std, "y", 2, false) }, "no such session")

	id := s.session("x").ID
	verb(app.ExitOK, func(std app.Std) int { return app.SessionsReset(ctx, s.o, std, "x") }, "New session")
	if s.session("x").ID == id {
		t.Error("the session was not reset")
	}
	s.expect("turn.run", `{"session":"x","message":"the third"}`, `"status":"answered"`)

	file := filepath.Join(t.TempDir(), "x.jsonl")
	verb(app.ExitOK, func(std app.Std) int { return app.SessionsExport(ctx, s.o, std, "x", file) })
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range bytes.Lines(text) {
		var l struct{ Type, Transcript string }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		counts[l.Type]++
	}
	if counts["session"] != 1 || counts["transcript"] != 2 || counts["entry"] != 6 || counts["decision"] != 3 || !strings.Contains(string(text), "the first question") {
		t.Errorf("%v in %s", counts, text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	verb(app.ExitFailed, func(std app.Std) int { return app.SessionsExport(ctx, s.o, std, "x", file) }) // never over something else

	verb(app.ExitOK, func(std app.Std) int { return app.SessionsCleanup(ctx, s.o, std, false, false) }, "removed: 0")
	verb(app.ExitUsage, func(std app.Std) int { return app.SessionsDelete(ctx, s.o, std, "x", false) }, "--yes")
	verb(app.ExitOK, func(std app.Std) int { return app.SessionsDelete(ctx, s.o, std, "x", true) }, "is deleted")
	verb(app.ExitFailed, func(std app.Std) int { return app.SessionsDelete(ctx, s.o, std, "x", true) }, "no such session")
	db, err := sqlite.Open(ctx, filepath.Join(s.state, "state", "bot.sqlite"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, table := range []string{"sessions", "transcript", "session_archive", "decisions"} {
		var n int
		if err := db.Reads().QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s has %d rows left, %v", table, n, err)
		}
	}
}

func TestWithoutABotOneCanOnlyLook(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	o := app.Options{Config: filepath.Join(dir, "bot.yaml"), Env: func(name string) (string, bool) {
		v, ok := map[string]string{"OPENCLAW_STATE_DIR": dir, "OLLAMA_HOST": "127.0.0.1:1"}[name]
		return v, ok
	}}
	if err := os.WriteFile(o.Config, []byte(offlineModels), 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, text := run(func(std app.Std) int { return app.SessionsList(ctx, o, std, "", 10, true) }); exit != app.ExitOK || strings.TrimSpace(text) != "[]" {
		t.Errorf("before anything: exit %d, %s", exit, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "state")); err == nil {
		t.Error("looking made a database")
	}
	db, err := sqlite.Open(ctx, filepath.Join(dir, "state", "bot.sqlite"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := session.New(ctx, db, session.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Ensure(ctx, session.Seed{Key: "agent:main:cli:x", AgentID: "main"}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		exit int
		text string
		f    func(std app.Std) int
	}{
		"list":           {app.ExitOK, "agent:main:cli:x", func(std app.Std) int { return app.SessionsList(ctx, o, std, "", 10, false) }},
		"show":           {app.ExitOK, "agent:main:cli:x", func(std app.Std) int { return app.SessionsShow(ctx, o, std, "x", 10, false) }},
		"export":         {app.ExitOK, `"type":"session"`, func(std app.Std) int { return app.SessionsExport(ctx, o, std, "x", "") }},
		"cleanup, dry":   {app.ExitOK, "would go: 0", func(std app.Std) int { return app.SessionsCleanup(ctx, o, std, true, false) }},
		"models":         {app.ExitOK, "sim/understudy", func(std app.Std) int { return app.ModelsList(ctx, o, std, "", false) }},
		"models status":  {app.ExitOK, "fallback 1", func(std app.Std) int { return app.ModelsStatus(ctx, o, std, false) }},
		"reset":          {app.ExitFailed, "start one with: bot run", func(std app.Std) int { return app.SessionsReset(ctx, o, std, "x") }},
		"delete":         {app.ExitFailed, "start one with: bot run", func(std app.Std) int { return app.SessionsDelete(ctx, o, std, "x", true) }},
		"cleanup":        {app.ExitFailed, "start one with: bot run", func(std app.Std) int { return app.SessionsCleanup(ctx, o, std, false, false) }},
		"agent":          {app.ExitFailed, "start one with: bot run", func(std app.Std) int { return app.Agent(ctx, o, std, app.AgentTurn{Session: "x", Message: "y"}) }},
		"show of nobody": {app.ExitFailed, "no such session", func(std app.Std) int { return app.SessionsShow(ctx, o, std, "y", 10, false) }},
	} {
		if exit, text := run(c.f); exit != c.exit || !strings.Contains(text, c.text) {
			t.Errorf("%s: exit %d, %s", name, exit, text)
		}
	}
}

func TestModelsOfARunningBot(t *testing.T) {
	s := newScripts(t, "")
	s.expect("models.list", `{"provider":"SIM"}`, `"ref":"sim/lead"`, `"role":"primary"`, `"position":1`, `"credential":"ok"`)
	s.expect("models.list", `{"provider":"nobody"}`, `"models":[]`)
	s.expect("models.list", `{"agent":"other"}`, "-32602 params.agent: there is no such agent")
	if err := s.sim.Fail(sim.ModelLead, "rate_limit", time.Minute); err != nil {
		t.Fatal(err)
	}
	s.expect("turn.run", `{"session":"x","message":"hello"}`, `"model":"sim/understudy"`)
	if exit, text := run(func(std app.Std) int { return app.ModelsStatus(t.Context(), s.o, std, false) }); exit != app.ExitOK || !strings.Contains(text, "resting (rate_limit) until") {
		t.Errorf("exit %d, %s", exit, text)
	}
}

// TestTheExamplesOfTheDocument runs every command line of docs/rpc.md against a bot.
func TestTheExamplesOfTheDocument(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	text, err := os.ReadFile("../docs/rpc.md")
	if err != nil {
		t.Fatal(err)
	}
	bot := served(t, "gateway: {token: a-token-of-some-length}\n", func(o *app.Options) { o.Sim = sim.New(sim.Config{Pause: -1}) })
	ran := 0
	for _, block := range strings.Split(string(text), "```sh\n")[1:] {
		script, rest, _ := strings.Cut(block, "```")
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Env = append(os.Environ(), "BOT="+strings.TrimSuffix(bot.URL(), "/"), "TOKEN=a-token-of-some-length")
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v", script, err)
		}
		_, answer, ok := strings.Cut(rest, "```json\n")
		if !ok {
			t.Fatalf("%s: the document shows no answer", script)
		}
		answer, _, _ = strings.Cut(answer, "```")
		want, got := strings.Fields(answer), strings.Fields(string(out))
		for _, w := range want { // the parts of the answer that do not differ from day to day
			if strings.Contains(w, "…") {
				continue
			}
			if !strings.Contains(strings.Join(got, " "), strings.TrimSuffix(w, ",")) {
				t.Errorf("%s\nanswered %s\nwithout %s", script, out, w)
			}
		}
		ran++
	}
	if ran < 5 {
		t.Errorf("the document has %d examples", ran)
	}
}

func TestAMessageFromStandardInput(t *testing.T) {
	s := newScripts(t, "")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "from a pipe\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit := app.Agent(t.Context(), s.o, app.Std{In: r, Out: &out, Err: &out}, app.AgentTurn{Session: "x", Message: "-"})
	if exit != app.ExitOK || s.session("x").Title != "from a pipe" {
		t.Errorf("exit %d, %s", exit, out.String())
	}
}
