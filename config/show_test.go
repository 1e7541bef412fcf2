package config

import (
	"strings"
	"testing"
)

// What counts although nobody wrote it is shown, and what somebody wrote stays.
func TestShownWithWhatCountsUnsaid(t *testing.T) {
	for text, want := range map[string][]string{
		"": {"every: 30m0s\n", "timeoutSeconds: 600\n"},
		"agents: {defaults: {timeoutSeconds: 0, heartbeat: {every: 0}}}": {"every: 0s\n", "timeoutSeconds: 0\n"},
	} {
		c := must(t, text)
		out, err := c.Redacted()
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(out), w) {
				t.Errorf("%q: %q is not in\n%s", text, w, out)
			}
		}
		if text == "" && (c.File.Agents.Defaults.TimeoutSeconds != nil || c.File.Agents.Defaults.Heartbeat.Every != nil) {
			t.Error("looking changed something")
		}
	}
}
