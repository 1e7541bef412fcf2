package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"understudy/config"
	"understudy/llm"
)

// parser reads the sections of a scenario and notes every problem with its place.
type parser struct {
	file     string
	env      func(string) (string, bool)
	s        *scenario
	problems []config.Problem
	// checks need the whole scenario; they run when everything is read.
	checks []func()
}

// keys maps the keys of a section to what reads their values.
type keys map[string]func(n ast.Node, at string)

func (p *parser) fail(n ast.Node, at, text, hint string) {
	x := config.Problem{File: p.file, Key: at, Text: text, Hint: hint}
	if n != nil {
		if tk := n.GetToken(); tk != nil && tk.Position != nil {
			x.Line, x.Column = tk.Position.Line, tk.Position.Column
		}
	}
	p.problems = append(p.problems, x)
}

// adopt takes over the problems of a configuration that stands at the given key.
func (p *parser) adopt(at string, err error) {
	var many *config.Error
	if errors.As(err, &many) {
		for _, x := range many.Problems {
			x.Key = strings.TrimSuffix(at+"."+x.Key, ".")
			p.problems = append(p.problems, x)
		}
		return
	}
	p.problems = append(p.problems, config.Problem{File: p.file, Text: err.Error()})
}

// entries returns the pairs of a mapping.
func (p *parser) entries(n ast.Node, at string) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	p.fail(n, at, "here a section of keys is expected", "")
	return nil
}

// section reads a mapping with known keys, in the order of the file.
func (p *parser) section(n ast.Node, at string, known keys) {
	seen := map[string]bool{}
	for _, e := range p.entries(n, at) {
		key := e.Key.GetToken().Value
		path := strings.TrimPrefix(at+"."+key, ".")
		if seen[key] {
			p.fail(e.Key, path, "this key stands here twice", "")
			continue
		}
		seen[key] = true
		read, ok := known[key]
		if !ok {
			names := make([]string, 0, len(known))
			for k := range known {
				names = append(names, k)
			}
			slices.Sort(names)
			p.fail(e.Key, path, "unknown key", "known: "+strings.Join(names, ", "))
			continue
		}
		read(e.Value, path)
	}
}

// table reads a mapping with free keys.
func (p *parser) table(n ast.Node, at string, read func(key string, n ast.Node, at string)) {
	if n.Type() == ast.NullType {
		return
	}
	for _, e := range p.entries(n, at) {
		key := e.Key.GetToken().Value
		read(key, e.Value, fmt.Sprintf("%s[%q]", at, key))
	}
}

func (p *parser) list(n ast.Node, at string, read func(n ast.Node, at string)) {
	if n.Type() == ast.NullType {
		return
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		p.fail(n, at, "here a list is expected", "")
		return
	}
	for i, v := range seq.Values {
		read(v, fmt.Sprintf("%s[%d]", at, i))
	}
}

// text reads a scalar as it is written.
func (p *parser) text(n ast.Node, at string) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.NullNode:
		return ""
	case ast.ScalarNode:
		return n.GetToken().Value
	}
	p.fail(n, at, "here a text is expected", "")
	return ""
}

func (p *parser) texts(n ast.Node, at string) map[string]string {
	m := map[string]string{}
	p.table(n, at, func(k string, n ast.Node, at string) { m[k] = p.text(n, at) })
	return m
}

func (p *parser) word(n ast.Node, at string, words ...string) string {
	w := p.text(n, at)
	if !slices.Contains(words, w) {
		p.fail(n, at, fmt.Sprintf("%q is none of %s", w, strings.Join(words, ", ")), "")
	}
	return w
}

// switched reads a key that says something by being there; false would say nothing.
func (p *parser) switched(n ast.Node, at string) {
	if !p.flag(n, at) {
		p.fail(n, at, "only true makes sense here", "leave the key out")
	}
}

// name reads a text that must say something.
func (p *parser) name(n ast.Node, at string) string {
	s := p.text(n, at)
	if strings.TrimSpace(s) == "" {
		p.fail(n, at, "here a name is expected", "")
	}
	return s
}

// profileID reads the id of a stored credential.
func (p *parser) profileID(n ast.Node, at string) llm.ProfileID {
	id := llm.ProfileID(p.text(n, at))
	if id.Provider() == "" || id.Name() == "" {
		p.fail(n, at, fmt.Sprintf("%q is not a profile id", id), "an id is provider:name, such as alpha:p1")
	}
	return id
}

// reason reads why a request failed (spec/failover.md §6).
func (p *parser) reason(n ast.Node, at string) llm.Reason {
	return llm.Reason(p.word(n, at, reasonWords...))
}

// reasonWords are the reasons that health can hold.
var reasonWords = []string{
	string(llm.ReasonAuth), string(llm.ReasonAuthPermanent), string(llm.ReasonBilling), string(llm.ReasonRateLimit),
	string(llm.ReasonOverloaded), string(llm.ReasonTimeout), string(llm.ReasonFormat), string(llm.ReasonContextOverflow),
	string(llm.ReasonModelNotFound), string(llm.ReasonSessionExpired), string(llm.ReasonRefusal), string(llm.ReasonAborted),
	string(llm.ReasonEmptyResponse), string(llm.ReasonNoErrorDetails), string(llm.ReasonUnclassified), "unknown",
}

func (p *parser) number(n ast.Node, at string) int {
	v, err := strconv.Atoi(p.text(n, at))
	if err != nil || v < 0 {
		p.fail(n, at, "here a whole number is expected, 0 or more", "")
	}
	return v
}

// positive reads a whole number above 0.
func (p *parser) positive(n ast.Node, at string) int {
	v, err := strconv.Atoi(p.text(n, at))
	if err != nil || v < 1 {
		p.fail(n, at, "here a whole number is expected, 1 or more", "")
	}
	return v
}

// status reads an HTTP status.
func (p *parser) status(n ast.Node, at string) int {
	v, err := strconv.Atoi(p.text(n, at))
	if err != nil || v < 100 || v > 999 {
		p.fail(n, at, "here an HTTP status is expected", "such as 429 or 529")
	}
	return v
}

func (p *parser) flag(n ast.Node, at string) bool {
	switch p.text(n, at) {
	case "true":
		return true
	case "false":
		return false
	}
	p.fail(n, at, "here true or false is expected", "")
	return false
}

// duration reads "250ms", "1m30s", "2d" or 0.
func (p *parser) duration(n ast.Node, at string) time.Duration {
	d, err := parseSpan(p.text(n, at))
	if err != nil {
		p.fail(n, at, err.Error(), "write for example 250ms, 30s, 5m, 1h or 2d")
	}
	return d
}

// moment reads a time: an offset from the start, RFC 3339, or epoch milliseconds.
func (p *parser) moment(n ast.Node, at string) time.Time {
	s := strings.TrimSpace(p.text(n, at))
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t.UTC().Truncate(time.Millisecond)
	}
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil && ms > 1e9 {
		if ms < 1e11 {
			ms *= 1000 // seconds
		}
		return time.UnixMilli(ms).UTC()
	}
	d, err := parseSpan(s)
	if err != nil {
		p.fail(n, at, fmt.Sprintf("%q is not a time", s), "an offset from the start such as 0s, +30s, -10m, 1h, or RFC 3339")
	}
	return p.s.start.Add(d)
}

// parseSpan reads a Go duration that may begin with a sign and use d for days.
func parseSpan(s string) (time.Duration, error) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "+")
	if s == "0" {
		return 0, nil
	}
	if days, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || n < -10000 || n > 10000 {
			return 0, fmt.Errorf("%q is not a duration", s)
		}
		total := time.Duration(n * 24 * float64(time.Hour))
		if rest == "" {
			return total, nil
		}
		more, err := time.ParseDuration(rest)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration", s)
		}
		return total + more, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration", s)
	}
	return d.Truncate(time.Millisecond), nil
}

// rule reads one entry of the world.
func (p *parser) rule(n ast.Node, at string) {
	r := &rule{from: p.s.start}
	answered := false
	p.section(n, at, keys{
		"provider": func(n ast.Node, at string) { r.provider = llm.NormalizeProvider(p.name(n, at)) },
		"model":    func(n ast.Node, at string) { r.model = p.name(n, at) },
		"profile":  func(n ast.Node, at string) { r.profile = p.profileID(n, at) },
		"from":     func(n ast.Node, at string) { r.from = p.moment(n, at) },
		"until":    func(n ast.Node, at string) { r.until = p.moment(n, at) },
		"times":    func(n ast.Node, at string) { r.times = p.positive(n, at) },
		"answer":   func(n ast.Node, at string) { answered = true; r.answer = p.answer(n, at) },
	})
	if prefix := r.provider + "/"; r.provider != "" && strings.HasPrefix(r.model, prefix) {
		r.model = strings.TrimPrefix(r.model, prefix)
	}
	if !answered {
		p.fail(n, at, "the rule has no answer", "")
	}
	p.s.world = append(p.s.world, r)
}

func (p *parser) answer(n ast.Node, at string) answer {
	var a answer
	kinds := 0
	kind := func(f func(ast.Node, string)) func(ast.Node, string) {
		return func(n ast.Node, at string) { kinds++; f(n, at) }
	}
	p.section(n, at, keys{
		"text":    kind(func(n ast.Node, at string) { s := p.text(n, at); a.text = &s }),
		"status":  kind(func(n ast.Node, at string) { a.status = p.status(n, at) }),
		"hang":    kind(func(n ast.Node, at string) { p.switched(n, at); a.hang = true }),
		"cut":     kind(func(n ast.Node, at string) { s := p.text(n, at); a.cut = &s }),
		"empty":   kind(func(n ast.Node, at string) { p.switched(n, at); a.empty = true }),
		"tool":    kind(func(n ast.Node, at string) { a.tool = p.name(n, at) }),
		"error":   kind(func(n ast.Node, at string) { a.failure = p.name(n, at) }),
		"headers": func(n ast.Node, at string) { a.headers = lowerKeys(p.texts(n, at)) },
		"body":    func(n ast.Node, at string) { a.body = p.body(n, at) },
		"latency": func(n ast.Node, at string) { a.latency = p.duration(n, at) },
	})
	switch {
	case kinds != 1:
		p.fail(n, at, "an answer is exactly one of text, status, hang, cut, empty, tool, error", "")
	case a.status == 0 && (a.headers != nil || a.body != nil):
		p.fail(n, at, "headers and body belong to a status", "add status: <number>")
	}
	return a
}

// body reads a response body: a text as it is, anything else as JSON.
func (p *parser) body(n ast.Node, at string) []byte {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return []byte(p.text(n, at))
	}
	var v any
	if err := yaml.NodeToValue(n, &v); err != nil {
		p.fail(n, at, "this body cannot be read", "write a text or a section of keys")
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		p.fail(n, at, "this body cannot be written as JSON", "write it as a text")
	}
	return b
}

func lowerKeys(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[strings.ToLower(k)] = v
	}
	return out
}
