package app_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"understudy/app"
	"understudy/gateway"
	"understudy/provider/sim"
)

// TestAModelForOneTurnIsReadAsByTheCommand: what /model takes and refuses, turn.run takes and refuses, but for
// profiles.
func TestAModelForOneTurnIsReadAsByTheCommand(t *testing.T) {
	s := newScripts(t, "")
	if err := os.WriteFile(s.o.Config, []byte(strings.Replace(offlineModels, "{defaults: {", "{defaults: {modelPolicy: {allow: [sim/understudy]}, models: {sim/understudy: {alias: second}}, ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]string{
		"second": `"model":"sim/understudy"`, "default": `"model":"sim/lead"`, "sim/lead": `"model":"sim/lead"`,
		"sim/other": "-32002 Model override \"sim/other\" is not allowed", "nowhere/x": "-32002 I don't know", "second@p": "-32002 I don't know",
	} {
		if got := s.call("turn.run", `{"session":"nightly","message":"who?","model":"`+model+`"}`); !strings.Contains(got, want) {
			t.Errorf("%s: %s", model, got)
		}
	}
}

// TestAllDoorsShareOneLimit fills the bot with turns at one door and knocks at the other.
func TestAllDoorsShareOneLimit(t *testing.T) {
	s := &scripts{t: t}
	bot := served(t, "gateway: {token: a-token-of-some-length}\n", func(o *app.Options) {
		s.sim = sim.New(sim.Config{Pause: -1})
		o.Sim, o.NoControl = s.sim, false
		s.state, _ = o.Env("OPENCLAW_STATE_DIR")
	})
	url := strings.TrimSuffix(bot.URL(), "/") + "/rpc"
	s.client = gateway.NewControlClient(filepath.Join(s.state, gateway.ControlSocket))
	if err := s.sim.Fail(sim.ModelLead, "hang", 0); err != nil {
		t.Fatal(err)
	}
	const most, sessions = 64, 4
	ctx, leave := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for i := range most {
		callers.Go(func() {
			err := s.client.CallRPC(ctx, "turn.run", map[string]string{"session": fmt.Sprint("s", i%sessions), "message": "x"}, nil, nil)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		})
	}
	s.until(func() bool {
		var list struct{ Sessions []app.SessionInfo }
		if err := s.client.CallRPC(ctx, "sessions.list", nil, &list, nil); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, x := range list.Sessions {
			if n += x.Waiting; x.Running {
				n++
			}
		}
		return n == most
	})
	const one = `{"jsonrpc":"2.0","id":1,"method":"turn.run","params":{"session":"s9","message":"x"}}`
	soon, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(soon, http.MethodPost, url, strings.NewReader(one))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer a-token-of-some-length")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(got), "-32003") {
		t.Errorf("at the other door: %s, %v", got, err)
	}
	leave()
	callers.Wait()
}
