package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/llm"
	"understudy/provider/sim"
)

func TestParseCommand(t *testing.T) {
	fail := func(model string, kind llm.Reason, d time.Duration) sim.Command {
		return sim.Command{Verb: sim.VerbFail, Model: model, Kind: kind, For: d}
	}
	tests := map[string]sim.Command{
		"":                              {},
		"  status ":                     {},
		"help":                          {Verb: sim.VerbHelp},
		"ok":                            {Verb: sim.VerbOK},
		"lead ok":                       {Verb: sim.VerbOK, Model: "lead"},
		"sim/understudy OK":             {Verb: sim.VerbOK, Model: "understudy"},
		"lead rate_limit 60s":           fail("lead", llm.ReasonRateLimit, time.Minute),
		"Lead Rate-Limit for 1m":        fail("lead", llm.ReasonRateLimit, time.Minute),
		"understudy hang":               fail("understudy", "hang", 0),
		"sim/lead\tbilling \n 1h30m":    fail("lead", llm.ReasonBilling, 90*time.Minute),
		"understudy model_not_found 5s": fail("understudy", llm.ReasonModelNotFound, 5*time.Second),
	}
	for args, want := range tests {
		got, err := sim.ParseCommand(args)
		if err != nil {
			t.Errorf("%q: %v", args, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
	}
}

func TestParseCommandErrorsHelp(t *testing.T) {
	tests := map[string]string{ // what was typed, what the error must name
		"leed rate_limit":                 "lead or understudy",
		"lead":                            "rate_limit",
		"lead explode":                    "overloaded",
		"lead aborted":                    "rate_limit",
		"lead auth 60":                    "60s",
		"lead auth for":                   "60s",
		"lead auth 1m 2m":                 "one time",
		"lead auth -5s":                   "out of range",
		"lead auth 48h":                   "at most 24h",
		"lead auth 0s":                    "more than nothing",
		"lead ok 5m":                      "/sim lead ok",
		"rate_limit lead":                 "lead or understudy",
		strings.Repeat("x", 5000) + " ok": "lead or understudy",
	}
	for args, want := range tests {
		_, err := sim.ParseCommand(args)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("%.40q: error %v does not name %q", args, err, want)
		}
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{"", "lead rate_limit 60s", "ok", "lead auth for 5m", "\xff\xfe x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, args string) {
		c, err := sim.ParseCommand(args)
		if err != nil || c.Verb != sim.VerbFail {
			return
		}
		if err := sim.New(sim.Config{}).Fail(c.Model, c.Kind, c.For); err != nil {
			t.Errorf("what was parsed from %q is refused: %v", args, err)
		}
	})
}
