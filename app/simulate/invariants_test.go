package simulate_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// answers are what a model API of a random scenario may do.
var answers = []string{
	`{text: fine, latency: 300ms}`,
	`{empty: true}`,
	`{cut: "half an", latency: 400ms}`,
	`{hang: true}`,
	`{error: ECONNREFUSED}`,
	`{error: ECONNRESET}`,
	`{tool: lookup}`,
	`{status: 429, latency: 100ms, body: {error: {type: rate_limit_error, message: slow down}}}`,
	`{status: 429, headers: {retry-after: "20"}, body: {error: {type: rate_limit_error, message: slow down}}}`,
	`{status: 429, headers: {retry-after: "400"}, body: {error: {type: rate_limit_error, message: slow down}}}`,
	`{status: 529, latency: 200ms, body: {error: {type: overloaded_error, message: Overloaded}}}`,
	`{status: 500, body: {error: {message: internal server error}}}`,
	`{status: 401, body: {error: {code: invalid_api_key, message: Incorrect API key provided}}}`,
	`{status: 401, body: {error: {message: This API key has been revoked}}}`,
	`{status: 402, body: {error: {message: Insufficient credits}}}`,
	`{status: 404, body: {error: {code: model_not_found, message: The model does not exist}}}`,
	`{status: 404, body: {error: {code: previous_response_not_found, message: Previous response not found.}}}`,
	`{status: 400, body: {error: {type: invalid_request_error, message: "temperature: must be at most 1"}}}`,
	`{status: 400, body: {error: {code: context_length_exceeded, message: This model's maximum context length is 8192 tokens}}}`,
}

var allModels = []string{"alpha/a1", "alpha/a2", "beta/b1", "gamma/g1"}

// setting is a random scenario and what the invariants need to know of it.
type setting struct {
	yaml     string
	chain    []string          // of the default selection
	strict   map[string]string // session → the only model that may answer
	tasks    map[string]bool   // sessions of scheduled tasks
	profiles map[string]int    // provider → number of its profiles
	profile  map[string]bool   // every id that exists
}

func randomSetting(rt *rapid.T) setting {
	s := setting{strict: map[string]string{}, tasks: map[string]bool{}, profiles: map[string]int{}, profile: map[string]bool{}}
	model := rapid.SampledFrom(allModels)
	s.chain = rapid.SliceOfNDistinct(model, 1, 4, rapid.ID[string]).Draw(rt, "chain")
	var b strings.Builder
	fmt.Fprintf(&b, "config: {agents: {defaults: {model: {primary: %s, fallbacks: [%s]}, timeoutSeconds: %d}}}\n",
		s.chain[0], strings.Join(s.chain[1:], ", "), rapid.SampledFrom([]int{0, 60, 600}).Draw(rt, "limit"))
	b.WriteString("store:\n  profiles:\n")
	for _, provider := range []string{"alpha", "beta", "gamma"} {
		s.profiles[provider] = rapid.IntRange(1, 3).Draw(rt, provider)
		for i := range s.profiles[provider] {
			id := fmt.Sprintf("%s:p%d", provider, i+1)
			s.profile[id] = true
			fmt.Fprintf(&b, "    - {id: %q, type: api_key}\n", id)
		}
	}
	strict := model.Draw(rt, "strict")
	s.strict["strict"] = strict
	s.tasks["task"] = true
	fmt.Fprintf(&b, "sessions: {strict: {modelOverride: %s, modelOverrideSource: user}}\nworld:\n", strict)
	for range rapid.IntRange(0, 8).Draw(rt, "rules") {
		from := rapid.IntRange(0, 900).Draw(rt, "from")
		fmt.Fprintf(&b, "  - {provider: %s, from: %ds, until: %ds, answer: %s}\n",
			rapid.SampledFrom([]string{"alpha", "beta", "gamma"}).Draw(rt, "of"),
			from, from+rapid.IntRange(1, 900).Draw(rt, "for"), rapid.SampledFrom(answers).Draw(rt, "answer"))
	}
	b.WriteString("  - {answer: {text: ok}}\nevents:\n")
	for range rapid.IntRange(1, 12).Draw(rt, "events") {
		at := rapid.IntRange(0, 1200).Draw(rt, "at")
		switch rapid.IntRange(0, 9).Draw(rt, "event") {
		case 0:
			fmt.Fprintf(&b, "  - {at: %ds, cron: {session: task, message: hi, model: %s}}\n", at, model.Draw(rt, "task"))
		case 1:
			fmt.Fprintf(&b, "  - {at: %ds, restart: true}\n", at)
		case 2:
			fmt.Fprintf(&b, "  - {at: %ds, stop: dm1}\n", at)
		default:
			fmt.Fprintf(&b, "  - {at: %ds, session: %s, user: hi}\n", at, rapid.SampledFrom([]string{"dm1", "dm2", "strict"}).Draw(rt, "who"))
		}
	}
	s.yaml = b.String()
	return s
}

// broken returns the first invariant of spec/failover.md §16 that the trace breaks, and "" if it
// keeps all of them. It looks at nothing but the trace.
func (s setting) broken(trace []row) string {
	for _, rule := range []func([]row) string{s.strictness, s.disabled, s.windows, s.oneAnswer, s.order, s.calls, s.alternation} {
		if fault := rule(trace); fault != "" {
			return fault
		}
	}
	return ""
}

// strictness is §16.1.
func (s setting) strictness(trace []row) string {
	for _, r := range trace {
		if only := s.strict[r.Session]; only != "" && r.Kind == "answer" && r.Model != only {
			return fmt.Sprintf("%s was answered by %s", r.Session, r.Model)
		}
		if only := s.strict[r.Session]; only != "" && r.Kind == "attempt" && r.Provider+"/"+r.Model != only {
			return fmt.Sprintf("%s/%s was asked for %s", r.Provider, r.Model, r.Session)
		}
	}
	return ""
}

// disabled is §16.2. A request is judged by the moment at which it started.
func (s setting) disabled(trace []row) string {
	type window struct {
		from, until float64
		reason      string
	}
	off := map[string]window{}
	for _, r := range trace {
		switch {
		case r.Kind == "health" && r.DisabledUntil != nil:
			w := off[r.Profile]
			if w.until < r.T {
				w = window{from: r.T}
			}
			off[r.Profile] = window{w.from, *r.DisabledUntil, r.Reason}
		case r.Kind == "health" && r.Model == "":
			delete(off, r.Profile)
		case r.Kind == "attempt":
			w, began := off[r.Profile], r.T-r.Duration
			if w.until > began+1e-9 && w.from < began-1e-9 && (w.reason != "billing" || !r.Probe) {
				return fmt.Sprintf("%s was called at %v although disabled until %v", r.Profile, began, w.until)
			}
		}
	}
	return ""
}

// windows is §16.3: an active end never moves earlier, later only by a statement (of the scenarios'
// answers, 400 s), and every window ends.
func (s setting) windows(trace []row) string {
	type end struct {
		until float64
		known bool
	}
	ends := map[string]end{}
	for _, r := range trace {
		if r.Kind != "health" {
			continue
		}
		for lane, until := range map[string]*float64{"cooldown": r.CooldownUntil, "disabled": r.DisabledUntil} {
			key := r.Profile + " " + r.Model + " " + lane
			old := ends[key]
			switch {
			case until == nil: // cleared, or over
			case math.IsInf(*until, 0) || *until-r.T > 24*3600+1:
				return fmt.Sprintf("the window of %s does not end", key)
			case old.known && old.until > r.T && *until < old.until:
				return fmt.Sprintf("the window of %s moved from %v back to %v", key, old.until, *until)
			case old.known && old.until > r.T && *until > old.until && !stated(*until-r.T):
				return fmt.Sprintf("the window of %s moved from %v to %v without a statement", key, old.until, *until)
			}
			if until == nil {
				delete(ends, key)
			} else {
				ends[key] = end{*until, true}
			}
		}
	}
	return ""
}

// stated tells the two waits that providers name in these scenarios.
func stated(d float64) bool { return math.Abs(d-400) < 0.01 || math.Abs(d-20) < 0.01 }

// oneAnswer is §16.4.
func (s setting) oneAnswer(trace []row) string {
	ended := map[int]string{}
	for _, r := range trace {
		if r.Kind != "answer" && r.Kind != "failed" && r.Kind != "stopped" {
			continue
		}
		if ended[r.Turn] != "" {
			return fmt.Sprintf("turn %d ended twice: %s, then %s", r.Turn, ended[r.Turn], r.Kind)
		}
		ended[r.Turn] = r.Kind
	}
	return ""
}

// order is §16.5: within a pass the candidates come in the order of the chain, each at one place,
// the requested one first.
func (s setting) order(trace []row) string {
	bound := map[int]string{} // turn → who ran a tool in it
	for _, r := range trace {
		switch ref := r.Provider + "/" + r.Model; {
		case r.Kind != "attempt" && r.Kind != "skip":
		case r.Reason == "aborted":
			delete(bound, r.Turn)
		case bound[r.Turn] != "" && bound[r.Turn] != ref:
			return fmt.Sprintf("turn %d went to %s after %s had worked", r.Turn, ref, bound[r.Turn])
		case r.Reason == "":
			bound[r.Turn] = ref
		}
	}
	for turn, passes := range s.walks(trace) {
		for _, pass := range passes {
			var met []string
			for _, r := range pass {
				ref := r.Provider + "/" + r.Model
				if len(met) > 0 && met[len(met)-1] == ref {
					continue
				}
				if slices.Contains(met, ref) {
					return fmt.Sprintf("turn %d came back to %s", turn, ref)
				}
				met = append(met, ref)
			}
			session := pass[0].Session
			switch {
			case s.tasks[session]:
				// The task's own model first, then the configured chain without it.
				rest := slices.DeleteFunc(slices.Clone(s.chain), func(x string) bool { return x == met[0] })
				rest = append(slices.Clone(rest[min(1, len(rest)):]), rest[:min(1, len(rest))]...) // the primary is last
				if met[0] == s.chain[0] {
					rest = s.chain[1:]
				}
				if !prefix(met[1:], rest) {
					return fmt.Sprintf("turn %d of a task walked %v; the chain is %v", turn, met, s.chain)
				}
			case s.strict[session] == "" && !prefix(met, s.chain):
				return fmt.Sprintf("turn %d walked %v; the chain is %v", turn, met, s.chain)
			}
		}
	}
	return ""
}

func prefix(a, b []string) bool { return len(a) <= len(b) && slices.Equal(a, b[:len(a)]) }

// walks returns the attempts and skips of every turn, split into passes. A turn that was
// interrupted by a restart begins anew.
func (s setting) walks(trace []row) map[int][][]row {
	walks := map[int][][]row{}
	fresh := map[int]bool{}
	for _, r := range trace {
		switch r.Kind {
		case "wait":
			fresh[r.Turn] = r.Why == "overloaded" || r.Why == "server_error"
		case "attempt", "skip":
			if len(walks[r.Turn]) == 0 || fresh[r.Turn] {
				walks[r.Turn] = append(walks[r.Turn], nil)
			}
			last := len(walks[r.Turn]) - 1
			walks[r.Turn][last] = append(walks[r.Turn][last], r)
			fresh[r.Turn] = r.Reason == "aborted"
		}
	}
	return walks
}

// calls is §16.7, for the default of one rotation. Extra calls with the same profile are the one
// repair, state or compaction retry, and the two waits of a last resort.
func (s setting) calls(trace []row) string {
	for turn, passes := range s.walks(trace) {
		for _, pass := range passes {
			// A task's own model may be the only one too.
			others := slices.ContainsFunc(pass, func(r row) bool { return r.Provider+"/"+r.Model != s.chain[0] })
			alone := len(s.chain) == 1 && (!s.tasks[pass[0].Session] || !others) || s.strict[pass[0].Session] != ""
			calls, profiles, limited, busy := map[string]int{}, map[string]map[string]bool{}, map[string]int{}, map[string]int{}
			for _, r := range pass {
				if r.Kind != "attempt" || r.Reason == "" { // answers to tool results are no retries
					continue
				}
				ref := r.Provider + "/" + r.Model
				calls[ref]++
				if profiles[ref] == nil {
					profiles[ref] = map[string]bool{}
				}
				profiles[ref][r.Profile] = true
				switch r.Reason {
				case "rate_limit":
					limited[ref]++
				case "overloaded":
					busy[ref]++
				}
			}
			for ref, n := range calls {
				provider, _, _ := strings.Cut(ref, "/")
				repeats := 1
				if alone {
					repeats = 3
				}
				if len(profiles[ref]) > s.profiles[provider] || n > s.profiles[provider]+repeats {
					return fmt.Sprintf("turn %d called %s %d times", turn, ref, n)
				}
				// A task that asks for the chain's only model is alone too; then the count says nothing.
				if !alone && !s.tasks[pass[0].Session] && (limited[ref] > 2 || busy[ref] > 2) {
					return fmt.Sprintf("turn %d went through %d limited and %d overloaded profiles of %s", turn, limited[ref], busy[ref], ref)
				}
			}
		}
	}
	return ""
}

// alternation is §16.8.
func (s setting) alternation(trace []row) string {
	told := map[string]string{} // session → who stands in
	for _, r := range trace {
		if r.Kind != "notice" {
			continue
		}
		if pair, ok := strings.CutPrefix(r.Text, "↪️ Model Fallback cleared: "); ok {
			if told[r.Session] == "" {
				return fmt.Sprintf("%s was told that %s is back, but not that it was away", r.Session, pair)
			}
			delete(told, r.Session)
		} else if pair, ok := strings.CutPrefix(r.Text, "↪️ Model Fallback: "); ok {
			active, _, _ := strings.Cut(pair, " ")
			if told[r.Session] == active {
				return fmt.Sprintf("%s was told twice in a row of %s", r.Session, active)
			}
			told[r.Session] = active
		}
	}
	return ""
}

// A property that cannot fail shows nothing: each of these traces breaks one rule.
func TestInvariantsCatchFaults(t *testing.T) {
	s := setting{
		chain: []string{"alpha/a1", "beta/b1"}, strict: map[string]string{"strict": "gamma/g1"},
		tasks: map[string]bool{"task": true}, profiles: map[string]int{"alpha": 3, "beta": 1, "gamma": 1},
	}
	at := func(f float64) *float64 { return &f }
	try := func(t float64, model, profile, reason string) row {
		provider, model, _ := strings.Cut(model, "/")
		return row{T: t, Kind: "attempt", Session: "dm1", Turn: 1, Provider: provider, Model: model, Profile: profile, Reason: reason}
	}
	cool := func(t, until float64) row {
		return row{T: t, Kind: "health", Profile: "alpha:p1", Model: "a1", CooldownUntil: at(until), Reason: "rate_limit"}
	}
	off := func(t, until float64, reason string) row {
		return row{T: t, Kind: "health", Profile: "alpha:p1", DisabledUntil: at(until), Reason: reason}
	}
	say := func(text string) row { return row{Kind: "notice", Session: "dm1", Turn: 1, Text: text} }
	const away, back = "↪️ Model Fallback: beta/b1 (selected alpha/a1; x)", "↪️ Model Fallback cleared: alpha/a1 (was beta/b1)"
	for name, trace := range map[string][]row{
		"another model answers a strict session": {{Kind: "answer", Session: "strict", Turn: 1, Model: "alpha/a1"}},
		"a revoked key is called":                {off(1, 601, "auth_permanent"), try(9, "alpha/a1", "alpha:p1", "")},
		"an empty account is called":             {off(1, 601, "billing"), try(9, "alpha/a1", "alpha:p1", "")},
		"a window shrinks":                       {cool(0, 60), cool(5, 35)},
		"a window grows by itself":               {cool(0, 30), cool(5, 65)},
		"a window never ends":                    {off(0, 1e9, "billing")},
		"a turn answers twice":                   {{Kind: "answer", Turn: 1}, {Kind: "answer", Turn: 1}},
		"the chain begins elsewhere":             {try(0, "beta/b1", "beta:p1", "")},
		"the chain comes back":                   {try(0, "alpha/a1", "alpha:p1", "auth"), try(0, "beta/b1", "beta:p1", "auth"), try(0, "alpha/a1", "alpha:p2", "")},
		"a model that is not in the chain":       {try(0, "alpha/a1", "alpha:p1", "auth"), try(0, "gamma/g1", "gamma:p1", "")},
		"another model after work":               {try(0, "alpha/a1", "alpha:p1", ""), try(0, "beta/b1", "beta:p1", "")},
		"too many rotations":                     {try(0, "alpha/a1", "alpha:p1", "rate_limit"), try(0, "alpha/a1", "alpha:p2", "rate_limit"), try(0, "alpha/a1", "alpha:p3", "rate_limit")},
		"one profile again and again":            {try(0, "beta/b1", "beta:p1", "timeout"), try(0, "beta/b1", "beta:p1", "timeout"), try(0, "beta/b1", "beta:p1", "timeout")},
		"told twice":                             {say(away), say(away)},
		"back without having been away":          {say(back)},
		"back twice":                             {say(away), say(back), say(back)},
	} {
		t.Run(name, func(t *testing.T) {
			if s.broken(trace) == "" {
				t.Error("nobody notices")
			}
		})
	}
	if fault := s.broken([]row{try(0, "alpha/a1", "alpha:p1", "auth"), try(0, "beta/b1", "beta:p1", ""), say(away), say(back), cool(1, 31), cool(40, 100)}); fault != "" {
		t.Errorf("a good trace is refused: %s", fault)
	}
}

func TestInvariantsHoldInRandomScenarios(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := randomSetting(rt)
		out, err := play("random", []byte(s.yaml), nil)
		if err != nil {
			rt.Fatalf("%v\n%s", err, s.yaml)
		}
		trace := rows(t, out)
		if fault := s.broken(trace); fault != "" {
			rt.Fatalf("%s\n%s\n%s", fault, s.yaml, out)
		}
		last := trace[len(trace)-1]
		stopped := 0
		for _, r := range trace {
			if r.Kind == "stopped" {
				stopped++
			}
			if r.Kind == "failed" && (r.Text == "" || len([]rune(r.Text)) > 600) {
				rt.Fatalf("an error text of %d characters: %q", len([]rune(r.Text)), r.Text)
			}
		}
		if last.Kind != "summary" || last.Turns != last.Answered+last.Failed+stopped {
			rt.Fatalf("%d turns, but %d answered, %d failed and %d stopped\n%s\n%s", last.Turns, last.Answered, last.Failed, stopped, s.yaml, out)
		}
	})
}
