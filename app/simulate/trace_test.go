package simulate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"understudy/app/simulate"
)

// row is one line of a trace as a reader of `--json` gets it.
type row struct {
	T             float64
	Kind          string
	Session       string
	Turn          int
	Provider      string
	Model         string
	Profile       string
	Probe         bool
	Status        *int
	Reason        string
	Why           string
	Duration      float64
	Seconds       float64
	Text          string
	RetryAt       *float64
	CooldownUntil *float64
	DisabledUntil *float64
	ErrorCount    int

	Turns, Answered, Failed, Calls, FailedCalls, Notices int
	ByModel                                              map[string]int
	WaitedSeconds, Slowest                               float64
}

// drill plays a scenario and returns its trace, as text and as rows.
func drill(t testing.TB, name string, scenario []byte, env map[string]string) (string, []row) {
	t.Helper()
	out, err := play(name, scenario, env)
	if err != nil {
		t.Fatalf("the scenario does not run:\n%v", err)
	}
	return out, rows(t, out)
}

func play(name string, scenario []byte, env map[string]string) (string, error) {
	var out bytes.Buffer
	err := simulate.Run(context.Background(), simulate.Options{
		Name: name, Scenario: scenario, JSON: true, Out: &out,
		Env: func(k string) (string, bool) { v, ok := env[k]; return v, ok },
	})
	return out.String(), err
}

func rows(t testing.TB, out string) []row {
	t.Helper()
	var list []row
	for _, l := range strings.Split(strings.TrimSpace(out), "\n") {
		var r row
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			t.Fatalf("not JSON: %s: %v", l, err)
		}
		list = append(list, r)
	}
	return list
}

// short writes a row the way the expectations of testdata do. The words of commands and error texts
// are left to the packages that own them.
func (r row) short() string {
	who := fmt.Sprintf("%s#%d", r.Session, r.Turn)
	switch r.Kind {
	case "attempt":
		s := fmt.Sprintf("%v %s try %s/%s %s ", r.T, who, r.Provider, r.Model, r.Profile)
		if r.Status != nil {
			s += fmt.Sprintf("%d ", *r.Status)
		}
		if r.Reason == "" {
			r.Reason = "ok"
		}
		s += fmt.Sprintf("%s %vs", r.Reason, r.Duration)
		if r.Probe {
			s += " probe"
		}
		return s
	case "skip":
		return fmt.Sprintf("%v %s skip %s/%s %s %s", r.T, who, r.Provider, r.Model, r.Reason, r.Why)
	case "wait":
		return fmt.Sprintf("%v %s wait %vs %s", r.T, who, r.Seconds, r.Why)
	case "notice":
		return fmt.Sprintf("%v %s notice %s", r.T, who, r.Text)
	case "answer":
		return fmt.Sprintf("%v %s answer %s: %s", r.T, who, r.Model, r.Text)
	case "command":
		return fmt.Sprintf("%v %s command", r.T, r.Session)
	case "failed":
		return fmt.Sprintf("%v %s failed %s retry %s", r.T, who, r.Reason, offset(r.RetryAt))
	case "stopped":
		return fmt.Sprintf("%v %s stopped", r.T, who)
	case "health":
		s := fmt.Sprintf("%v health %s", r.T, r.Profile)
		if r.Model != "" {
			s += " for " + r.Model
		}
		if r.CooldownUntil != nil {
			s += " cooling until " + offset(r.CooldownUntil)
		}
		if r.DisabledUntil != nil {
			s += " disabled until " + offset(r.DisabledUntil)
		}
		if r.Reason != "" {
			s += " " + r.Reason
		}
		return fmt.Sprintf("%s step %d", s, r.ErrorCount)
	case "summary":
		var by []string
		for ref, n := range r.ByModel {
			by = append(by, fmt.Sprintf(" %s=%d", ref, n))
		}
		slices.Sort(by)
		return fmt.Sprintf("%v summary %d turns %d answered %d failed,%s, %d calls %d failed, %d notices, waited %vs, slowest %vs",
			r.T, r.Turns, r.Answered, r.Failed, strings.Join(by, ""), r.Calls, r.FailedCalls, r.Notices, r.WaitedSeconds, r.Slowest)
	}
	return fmt.Sprintf("%v unknown kind %q", r.T, r.Kind)
}

func offset(f *float64) string {
	if f == nil {
		return "unknown"
	}
	return fmt.Sprint(*f)
}

// Every random scenario is a whole run of the product; a few of them are enough for every day.
func TestMain(m *testing.M) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if !set {
		_ = flag.Set("rapid.checks", randomDrills)
	}
	goleak.VerifyTestMain(m)
}

// TestRules plays the scenarios of testdata. Each file is about one part of spec/failover.md; a
// case is a scenario and what must happen, written by hand from the rules. A case may be limited to
// some kinds of lines: "name.want attempt answer". Summaries are compared where they are asked for.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			sections := archive(t, file)
			for i := 0; i+1 < len(sections); i += 2 {
				scenario, want := sections[i], sections[i+1]
				name := strings.TrimSuffix(scenario.name, ".yaml")
				_, kinds, ok := strings.Cut(want.name, ".want")
				if !ok || !strings.HasPrefix(want.name, name) {
					t.Fatalf("%s is not followed by what is wanted, but by %s", scenario.name, want.name)
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					out, trace := drill(t, scenario.name, []byte(scenario.data), nil)
					var got []string
					for _, r := range trace {
						if wants(strings.Fields(kinds), r.Kind) {
							got = append(got, strings.TrimSpace(r.short()))
						}
					}
					if diff := cmp.Diff(lines(want.data), got); diff != "" {
						t.Errorf("(-want +got)\n%s\n%s", diff, out)
					}
				})
			}
		})
	}
}

func wants(kinds []string, kind string) bool {
	if len(kinds) == 0 {
		return kind != "summary"
	}
	return slices.Contains(kinds, kind)
}

func lines(s string) []string {
	var list []string
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			list = append(list, l)
		}
	}
	return list
}

type section struct{ name, data string }

// archive reads a txtar file: sections that begin with "-- name --" on a line of its own.
func archive(t testing.TB, file string) []section {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []section
	for l := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(l), "-- "); ok && strings.HasSuffix(name, " --") {
			list = append(list, section{name: strings.TrimSuffix(name, " --")})
		} else if len(list) > 0 {
			list[len(list)-1].data += l
		}
	}
	return list
}

// keysOf returns the keys of a JSON object in their order.
func keysOf(t testing.TB, object string) (keys []string) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(object))
	depth, key := 0, true
	for {
		tok, err := dec.Token()
		if err != nil {
			return keys
		}
		switch tok := tok.(type) {
		case json.Delim:
			if tok == '{' || tok == '[' {
				depth++
			} else {
				depth--
			}
			key = true
		case string:
			if depth == 1 && key {
				keys, key = append(keys, tok), false
				continue
			}
			key = true
		default:
			key = true
		}
	}
}
