package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/app/simulate"
)

// story is the trace of a played scenario.
type story []event

// event is one line of the trace, as `bot simulate --json` documents it.
type event struct {
	T             float64
	Kind          string
	Session       string
	Turn          int
	Provider      string
	Model         string
	Profile       string
	Probe         bool
	Reason        string
	Why           string
	Text          string
	Duration      float64
	Seconds       float64
	RetryAt       *float64
	CooldownUntil *float64
	DisabledUntil *float64
	ErrorCount    int
}

// play runs a scenario on the virtual clock.
func play(t *testing.T, name, scenario string) story {
	t.Helper()
	var out bytes.Buffer
	err := simulate.Run(t.Context(), simulate.Options{
		Name: name, Scenario: []byte(scenario), JSON: true, Out: &out,
		Env: func(string) (string, bool) { return "", false },
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := read(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read parses a trace.
func read(trace []byte) (story, error) {
	var s story
	for line := range bytes.Lines(trace) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("trace line %q: %w", line, err)
		}
		if e.Kind != "summary" {
			s = append(s, e)
		}
	}
	return s, nil
}

// bare is the model id without its provider.
func bare(ref string) string {
	_, model, ok := strings.Cut(ref, "/")
	if !ok {
		return ref
	}
	return model
}

// call names an attempt: model@profile, both without their provider.
func (e event) call() string {
	_, profile, _ := strings.Cut(e.Profile, ":")
	return e.Model + "@" + profile
}

// request names an attempt in full.
func (e event) request() string { return e.Provider + "/" + e.Model + "@" + e.Profile }

func (e event) outcome() string {
	if e.Reason == "" {
		return "ok"
	}
	return e.Reason
}

// row names the health row of an event: profile or profile/model.
func (e event) row() string {
	if e.Model == "" {
		return e.Profile
	}
	return e.Profile + "/" + e.Model
}

// health says what a row looks like: "rate_limit until 30s step 1", or "healthy".
func (e event) health() string {
	switch {
	case e.DisabledUntil != nil:
		return fmt.Sprintf("disabled %s until %s step %d", e.Reason, span(*e.DisabledUntil), e.ErrorCount)
	case e.CooldownUntil != nil:
		return fmt.Sprintf("%s until %s step %d", e.Reason, span(*e.CooldownUntil), e.ErrorCount)
	}
	return "healthy"
}

// window is how long the block that the event tells of lasts; "" when it tells of none.
func (e event) window() string {
	switch {
	case e.DisabledUntil != nil:
		return span(*e.DisabledUntil - e.T)
	case e.CooldownUntil != nil:
		return span(*e.CooldownUntil - e.T)
	}
	return ""
}

// span writes seconds as people write them: 30s, 5m, 5h, 1m30s.
func span(seconds float64) string {
	s := (time.Duration(seconds*1000+0.5) * time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// String is the trace in short, for failed tests.
func (s story) String() string {
	var b strings.Builder
	for _, e := range s {
		what := e.Text
		switch e.Kind {
		case "attempt":
			what = fmt.Sprintf("%s %s (%s) after %s", e.request(), e.outcome(), e.Why, span(e.Duration))
		case "skip":
			what = fmt.Sprintf("%s/%s %s (%s)", e.Provider, e.Model, e.Reason, e.Why)
		case "wait":
			what = span(e.Seconds) + " " + e.Why
		case "health":
			what = e.row() + " " + e.health()
		case "answer":
			what = e.Model + ": " + e.Text
		case "failed":
			what = e.Reason + ": " + e.Text
		}
		fmt.Fprintf(&b, "%10s %-8s #%d %-8s %s\n", span(e.T), e.Session, e.Turn, e.Kind, strings.ReplaceAll(what, "\n", "⏎"))
	}
	return b.String()
}
