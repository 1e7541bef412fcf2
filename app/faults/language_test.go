package faults

import (
	"strings"
	"testing"
)

// trace is a small story: a refusal, a fallback, a failed turn.
const trace = `
{"t":0,"kind":"attempt","session":"dm","turn":1,"provider":"alpha","model":"a1","profile":"alpha:p1","probe":false,"status":429,"reason":"rate_limit","duration":0}
{"t":0,"kind":"health","profile":"alpha:p1","model":"a1","cooldownUntil":30,"disabledUntil":null,"reason":"rate_limit","errorCount":1}
{"t":2.5,"kind":"attempt","session":"dm","turn":1,"provider":"beta","model":"b1","profile":"beta:p1","probe":false,"status":null,"reason":"","duration":2.5}
{"t":2.5,"kind":"notice","session":"dm","turn":1,"text":"fallback"}
{"t":2.5,"kind":"answer","session":"dm","turn":1,"model":"beta/b1","text":"hello"}
{"t":60,"kind":"skip","session":"job","turn":2,"provider":"alpha","model":"a1","reason":"billing","why":"disabled"}
{"t":60,"kind":"wait","session":"job","turn":2,"seconds":5,"why":"overloaded"}
{"t":65,"kind":"failed","session":"job","turn":2,"reason":"billing","text":"no credit","retryAt":3600}
{"t":65,"kind":"health","profile":"alpha:p1","model":"a1","cooldownUntil":null,"disabledUntil":null,"reason":"","errorCount":0}
{"t":65,"kind":"summary","turns":2}
`

// TestExpectationsCanFail holds for every kind of expectation one that is met and one that is not.
func TestExpectationsCanFail(t *testing.T) {
	t.Parallel()
	s, err := read([]byte(strings.TrimSpace(trace)))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ met, missed string }{
		{"calls == a1@p1 b1@p1", "calls == a1@p1"},
		{"calls != a1@p1", "calls != a1@p1 b1@p1"},
		{"calls contains b1@p1", "calls contains b1@p2"},
		{"calls lacks g1", "calls lacks b1"},
		{`calls ~ ^a1@p\d b1`, `calls ~ ^b1`},
		{`turn 2 calls == ""`, `turn 1 calls == ""`},
		{"requests == alpha/a1@alpha:p1 beta/b1@beta:p1", "requests == a1@p1 b1@p1"},
		{"outcomes == a1@p1=rate_limit b1@p1=ok", "outcomes == a1@p1=ok b1@p1=ok"},
		{"times == 0s 0s", "times == 0s 2.5s"},
		{"session job skips == a1=billing", "session dm skips == a1=billing"},
		{"endings == b1 failed:billing", "endings == b1 b1"},
		{"waits == 5s", "waits == 2.5s"},
		{"waits <= 5s", "waits >= 6s"},
		{"windows alpha:p1/a1 == 30s", "windows alpha:p1/a1 == 1m"},
		{"until 1s health alpha:p1/a1 == rate_limit until 30s step 1", "health alpha:p1/a1 == rate_limit until 30s step 1"},
		{"health alpha:p1/a1 == healthy", "until 1s health alpha:p1/a1 == healthy"},
		{"health alpha:p1 == unchanged", "health alpha:p1/a1 == unchanged"},
		{"turn 1 ended == 2.5s", "ended == 2.5s"},
		{"retry == 1h", "retry == none"},
		{"notices == fallback", `notices == ""`},
		{`said == "notice:fallback | answer:hello | failed:no credit"`, `said == "answer:hello"`},
		{"failures contains credit", "answers contains credit"},
		{"count calls a1@* == 1", "count calls == 1"},
		{"count calls <= 2", "count calls >= 3"},
		{"from 60s count endings == 1", "from 60s count endings == 2"},
	} {
		for _, c := range []struct {
			line string
			met  bool
		}{{x.met, true}, {x.missed, false}} {
			e, err := parseExpectation(c.line)
			if err != nil {
				t.Errorf("%s: %v", c.line, err)
				continue
			}
			if err := e.check(s); (err == nil) != c.met {
				t.Errorf("%s: met is %t (%v)", c.line, err == nil, err)
			}
		}
	}
}

func TestExpectationsThatSayNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "# only a remark", "calls a1", "== a1", "turn one calls == a1", "from soon calls == a1", "a b c == d", `calls == "a`,
	} {
		if list, err := parseExpectations(text); err == nil {
			t.Errorf("%q is accepted: %+v", text, list)
		}
	}
	for _, line := range []string{"colour == red", "count calls contains 3", "count calls == many", "calls <= 3s", "waits <= long"} {
		s, err := read([]byte(strings.TrimSpace(trace)))
		if err != nil {
			t.Fatal(err)
		}
		x, err := parseExpectation(line)
		if err != nil {
			t.Fatal(err)
		}
		if x.check(s) == nil {
			t.Errorf("%s is met", line)
		}
	}
}

func TestScenarioFilesAreComplete(t *testing.T) {
	t.Parallel()
	const whole = "why\n-- variants --\none\ntwo\n-- a scenario --\nuser: $VARIANT\n-- expect --\ncalls == $VARIANT\n"
	f, err := split(whole)
	if err != nil || len(f.variants) != 2 || f.with("two").parts[0] != (part{"user: two\n", "calls == two\n"}) {
		t.Errorf("read %+v, %v", f, err)
	}
	for name, text := range map[string]string{
		"nothing":           "why\n",
		"no reason":         "-- a scenario --\nx\n-- expect --\ny\n",
		"no expectation":    "why\n-- a scenario --\nx\n",
		"no scenario":       "why\n-- expect --\ny\n",
		"two expectations":  "why\n-- a scenario --\nx\n-- expect --\ny\n-- expect --\nz\n",
		"an empty scenario": "why\n-- a scenario --\n-- expect --\ny\n",
	} {
		if _, err := split(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
