package simulate_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"understudy/app/simulate"
	"understudy/config"
)

// TestMistakes shows what a person reads who wrote a scenario wrong: file, line and key.
func TestMistakes(t *testing.T) {
	const head = "config: {agents: {defaults: {model: alpha/a1}}}\n"
	const tail = "\nevents: [{session: dm1, user: hi}]\n"
	for name, x := range map[string]struct{ scenario, want string }{
		"an unknown key":                {"wrold: []" + tail, "s.yaml:1:1: wrold: unknown key"},
		"an unknown key of an event":    {head + "events:\n  - {at: 0s, session: dm1, usr: hi}", "s.yaml:3:28: events[0].usr: unknown key"},
		"an unknown key of an answer":   {head + "world:\n  - {answer: {statsu: 429}}" + tail, "s.yaml:3:15: world[0].answer.statsu: unknown key"},
		"an unknown key of the config":  {"config:\n  agnets: {}" + tail, "s.yaml:2:3: config.agnets: "},
		"an unknown key of a reload":    {"events:\n  - {at: 1s, config: {agnets: {}}}", "s.yaml:2:23: events[0].config.agnets: "},
		"an unknown key of a profile":   {"store: {profiles: [{id: \"a:b\", kind: x}]}" + tail, "s.yaml:1:32: store.profiles[0].kind: unknown key"},
		"an unknown key of health":      {"store: {usageStats: {\"a:b\": {until: 1s}}}" + tail, "s.yaml:1:30: store.usageStats[\"a:b\"].until: unknown key"},
		"an unknown key of a session":   {"sessions: {dm1: {model: a/b}}" + tail, "s.yaml:1:18: sessions[\"dm1\"].model: unknown key"},
		"an unknown key of a task":      {"events:\n  - cron: {mesage: hi}", "s.yaml:2:12: events[0].cron.mesage: unknown key"},
		"the same key twice":            {head + "until: 1h\nuntil: 2h" + tail, "until"},
		"a list where keys are meant":   {"store: []" + tail, "s.yaml:1:8: store: here a section of keys is expected"},
		"keys where a list is meant":    {"world: {}" + tail, "s.yaml:1:8: world: here a list is expected"},
		"a section where text is meant": {"events: [{session: dm1, user: {}}]", "s.yaml:1:31: events[0].user: here a text is expected"},
		"a bad time":                    {head + "events:\n  - {at: soon, session: dm1, user: hi}", "s.yaml:3:10: events[0].at: \"soon\" is not a time"},
		"a time without a unit":         {head + "events:\n  - {at: 30, session: dm1, user: hi}", "s.yaml:3:10: events[0].at: \"30\" is not a time"},
		"a bad duration":                {"world: [{answer: {hang: true, latency: long}}]" + tail, "s.yaml:1:40: world[0].answer.latency: \"long\" is not a duration"},
		"a bad end":                     {"until: never" + tail, "s.yaml:1:8: until: \"never\" is not a time"},
		"a bad number":                  {"world: [{times: two, answer: {hang: true}}]" + tail, "s.yaml:1:17: world[0].times: here a whole number is expected"},
		"a bad status":                  {"world: [{answer: {status: limited}}]" + tail, "s.yaml:1:27: world[0].answer.status: here an HTTP status is expected"},
		"a bad flag":                    {"world: [{answer: {hang: yes please}}]" + tail, "s.yaml:1:25: world[0].answer.hang: here true or false is expected"},
		"hang: false":                   {"world: [{answer: {hang: false}}]" + tail, "s.yaml:1:25: world[0].answer.hang: only true makes sense here"},
		"two answers":                   {"world: [{answer: {hang: true, text: ok}}]" + tail, "s.yaml:1:18: world[0].answer: an answer is exactly one of"},
		"no answer":                     {"world: [{provider: alpha}]" + tail, "s.yaml:1:9: world[0]: the rule has no answer"},
		"a body without a status":       {"world: [{answer: {text: ok, body: {}}}]" + tail, "world[0].answer: headers and body belong to a status"},
		"a user without a session":      {"events:\n  - {at: 0s, user: hi}", "s.yaml:2:5: events[0].session: whose session?"},
		"an event of nothing":           {"events:\n  - {at: 0s, session: dm1}", "s.yaml:2:5: events[0]: this event does nothing"},
		"an event of two things":        {"events:\n  - {session: dm1, user: hi, restart: true}", "s.yaml:2:39: events[0].restart: one event does one thing"},
		"a repetition without an end":   {"events:\n  - {every: 1m, session: dm1, user: hi}", "s.yaml:2:5: events[0]: a repeated event needs an end"},
		"a repetition without time":     {"events:\n  - {every: 0s, until: 1m, session: dm1, user: hi}", "s.yaml:2:13: events[0].every: a repeated event needs a time between"},
		"an end without a repetition":   {"events:\n  - {at: 0s, until: 1m, session: dm1, user: hi}", "s.yaml:2:21: events[0].until: only a repeated event has until"},
		"no events":                     {head, "s.yaml:1:7: events: nothing happens"},
		"an empty file":                 {"", "s.yaml: the scenario is empty"},
		"a bad model of a session":      {"sessions: {dm1: {modelOverride: gpt}}" + tail, "s.yaml:1:33: sessions[\"dm1\"].modelOverride: \"gpt\" is not a model reference"},
		"a bad model of a task":         {head + "events:\n  - cron: {message: hi, model: gpt}", "s.yaml:3:32: events[0].cron.model: \"gpt\" is neither provider/model nor an alias"},
		"a bad fallback of a task":      {head + "events:\n  - cron: {message: hi, fallbacks: [a/b, gpt]}", "events[0].cron.fallbacks[1]: \"gpt\" is neither"},
		"a bad model of the config":     {"config: {agents: {defaults: {model: {primary: 7}}}}" + tail, "s.yaml:1:47: config.agents.defaults.model.primary"},
		"a bad number of the config":    {"config: {auth: {cooldowns: {billingBackoffHours: 0}}}" + tail, "config.auth.cooldowns.billingBackoffHours"},
		"an unknown agent":              {"sessions: {dm1: {agent: ops}}" + tail, "s.yaml:1:25: sessions[\"dm1\"].agent: there is no agent \"ops\""},
		"a bad profile id":              {"store: {profiles: [{id: p1}]}" + tail, "s.yaml:1:25: store.profiles[0].id: \"p1\" is not a profile id"},
		"a profile without an id":       {"store: {profiles: [{type: oauth}]}" + tail, "store.profiles[0].id: a profile needs an id"},
		"a profile twice":               {"store: {profiles: [{id: \"a:b\"}, {id: \"a:b\"}]}" + tail, "store.profiles[1].id: a:b stands here twice"},
		"a bad type":                    {"store: {profiles: [{id: \"a:b\", type: password}]}" + tail, "store.profiles[0].type: \"password\" is none of"},
		"a bad refresh":                 {"store: {profiles: [{id: \"a:b\", type: oauth, refresh: maybe}]}" + tail, "store.profiles[0].refresh: \"maybe\" is none of"},
		"a refresh of a key":            {"store: {profiles: [{id: \"a:b\", type: api_key, refresh: ok}]}" + tail, "store.profiles[0].refresh: only oauth profiles"},
		"a bad reason":                  {"store: {usageStats: {\"a:b\": {cooldownUntil: 1s, cooldownReason: tired}}}" + tail, "cooldownReason: \"tired\" is none of"},
		"a profile that is not there":   {"events:\n  - {remove: \"alpha:p9\"}", "s.yaml:2:14: events[0].remove: there is no profile alpha:p9"},
		"broken YAML":                   {"events: [", "s.yaml:1:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := play("s.yaml", []byte(x.scenario), nil)
			var problems *config.Error
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want a *config.Error", err)
			}
			if got := err.Error(); !strings.Contains(got, x.want) {
				t.Errorf("got  %s\nwant %s", got, x.want)
			}
		})
	}
}

// Everything that is wrong is said at once, in the order of the file.
func TestMistakesAreToldTogether(t *testing.T) {
	_, err := play("s.yaml", []byte("until: never\nworld: {}\nevents: [{user: hi}]\n"), nil)
	if err == nil {
		t.Fatal("accepted")
	}
	got := strings.Split(err.Error(), "\n")
	if len(got) != 3 || !strings.HasPrefix(got[0], "s.yaml:1:") || !strings.HasPrefix(got[1], "s.yaml:2:") || !strings.HasPrefix(got[2], "s.yaml:3:") {
		t.Errorf("got %q", got)
	}
}

func TestTheProcessEnvironmentIsRead(t *testing.T) {
	scenario := []byte(`
config: {agents: {defaults: {model: alpha/a1}}}
world: [{answer: {status: 429, headers: {retry-after: "5"}, body: {error: {type: rate_limit_error, message: slow down}}}}]
events: [{session: dm1, user: hi}]
`)
	_, trace := drill(t, "env", scenario, map[string]string{config.RetryMaxWaitVar: "4"})
	for _, r := range trace {
		if r.Kind == "wait" {
			t.Errorf("waited for %v s although the cap is 4 s", r.Seconds)
		}
	}
}

// A trace is a document: the same scenario gives the same bytes.
func TestTracesAreRepeatable(t *testing.T) {
	scenario := []byte(`
config: {agents: {defaults: {model: {primary: alpha/a1, fallbacks: [beta/b1]}}}}
store: {profiles: [{id: "alpha:p1", type: api_key}, {id: "alpha:me", type: oauth, expires: -1s, refresh: ok}]}
world:
  - {provider: alpha, until: 2m, answer: {status: 529, latency: 700ms, body: {error: {type: overloaded_error, message: Overloaded}}}}
  - {provider: beta, from: 30s, until: 1m, answer: {hang: true}}
events:
  - {every: 3s, from: 0s, until: 1m, session: dm1, user: a}
  - {every: 5s, from: 0s, until: 1m, session: dm2, user: b}
  - {every: 7s, from: 0s, until: 1m, session: dm3, user: c}
  - {at: 20s, stop: dm1}
  - {at: 33s, restart: true}
  - {at: 40s, session: dm2, user: /model beta/b1}
`)
	first, _ := drill(t, "first", scenario, nil)
	for range 3 {
		if again, _ := drill(t, "again", scenario, nil); again != first {
			t.Fatalf("two runs differ:\n%s\n---\n%s", first, again)
		}
	}
}

// The keys of every kind of line, in the documented order.
func TestLinesHaveTheDocumentedKeys(t *testing.T) {
	out, _ := drill(t, "keys", []byte(`
config: {agents: {defaults: {model: {primary: alpha/a1, fallbacks: [beta/b1]}}}}
sessions: {u: {modelOverride: gamma/g1, modelOverrideSource: user}}
world:
  - {provider: alpha, answer: {status: 402, body: {error: {message: Insufficient credits}}}}
  - {provider: gamma, answer: {status: 529, body: {error: {type: overloaded_error, message: Overloaded <now> & then}}}}
events:
  - {at: 0s, session: dm1, user: hi}
  - {at: 1s, session: dm1, user: hi}
  - {at: 2s, session: u, user: hi}
  - {at: 6s, stop: u}
  - {at: 7s, session: u, user: /status}
  - {at: 8s, cron: {session: job, message: hi, model: gamma/g1, fallbacks: [alpha/a1]}}
`), nil)
	want := map[string]string{
		"attempt": "t kind session turn provider model profile probe status reason duration",
		"skip":    "t kind session turn provider model reason why",
		"wait":    "t kind session turn seconds why",
		"notice":  "t kind session turn text",
		"answer":  "t kind session turn model text",
		"command": "t kind session text",
		"failed":  "t kind session turn reason text retryAt",
		"stopped": "t kind session turn",
		"health":  "t kind profile model cooldownUntil disabledUntil reason errorCount",
		"summary": "t kind turns answered failed byModel calls failedCalls notices waitedSeconds slowest",
	}
	seen := map[string]bool{}
	for i, r := range rows(t, out) {
		seen[r.Kind] = true
		if got := strings.Join(keysOf(t, strings.Split(out, "\n")[i]), " "); got != want[r.Kind] {
			t.Errorf("%s has the keys\n%s, want\n%s", r.Kind, got, want[r.Kind])
		}
	}
	for kind := range want {
		if !seen[kind] {
			t.Errorf("the scenario shows no line of kind %s", kind)
		}
	}
}

func TestWarningsOfTheConfigurationAreSaid(t *testing.T) {
	var out, notes bytes.Buffer
	err := simulate.Run(context.Background(), simulate.Options{
		Name: "s.yaml", JSON: true, Out: &out, Notes: &notes, Env: func(string) (string, bool) { return "", false },
		Scenario: []byte("config: {agents: {defaults: {model: {primary: alpha/a1, fallbacks: [nobody]}}}}\nevents: [{session: dm1, user: hi}]\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := notes.String(); !strings.Contains(got, "s.yaml:1:") || !strings.Contains(got, "nobody") {
		t.Errorf("the unresolvable fallback is not named: %q", got)
	}
}
