package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"understudy/app"
)

// Requests with too many tools are refused by the APIs, so some are left out, and the owner is told where
// owners look.
func TestTooManyToolsAreLeftOutAndTold(t *testing.T) {
	s := newScriptsWith(t, `mcp: {servers: {first: {url: "http://tools.test/mcp"}, second: {url: "http://tools.test/mcp"}}}`+"\n",
		func(o *app.Options) { o.Tools = &workshop{more: 70} })
	doctor := func() string {
		_, text := run(func(std app.Std) int { return app.Doctor(t.Context(), s.o, std, app.DoctorOptions{}) })
		return text
	}
	if text := doctor(); strings.Contains(text, "tools:") {
		t.Errorf("before anything was left out: %s", text)
	}
	told := ""
	s.until(func() bool {
		if exit, text := s.agent(app.AgentTurn{Session: "nightly", Message: "hello"}); exit != app.ExitOK {
			t.Fatal(text)
		}
		told = doctor()
		return strings.Contains(told, "tools:")
	})
	if !strings.Contains(told, "warn   tools: Models are not offered all tools of the server second:") || strings.Contains(told, "server first") || !strings.Contains(told, "mcp.servers.second") {
		t.Errorf("the doctor says %s", told)
	}
	_, text := run(func(std app.Std) int { return app.RemoteStatus(t.Context(), s.o, std, true) })
	var status struct {
		Readiness string
		Problems  []struct{ Subject string }
	}
	if err := json.Unmarshal([]byte(text), &status); err != nil || len(status.Problems) != 1 || status.Problems[0].Subject != "tools/second" || status.Readiness != "ready" {
		t.Errorf("%v: %s", err, text)
	}
}
