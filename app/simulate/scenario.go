package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"understudy/config"
	"understudy/llm"
)

// defaultStart is when a scenario begins that does not say.
var defaultStart = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// scenario is a parsed drill.
type scenario struct {
	start    time.Time
	until    time.Time // zero = when nothing is left to do
	env      map[string]string
	config   *config.Config
	warnings []config.Warning
	profiles []profile
	usage    []usage
	orders   map[string][]llm.ProfileID
	sessions []startSession
	world    []*rule
	events   []event
}

// profile is a stored credential of the scenario.
type profile struct {
	id      llm.ProfileID
	kind    llm.CredentialKind
	email   string
	expires time.Time
	refresh string // "", "ok", "invalid_grant", "timeout"
}

// usage is the recorded health of a profile, in the shape of exports and imports.
type usage struct {
	profile       llm.ProfileID
	lastUsed      time.Time
	errorCount    int
	failureCounts map[llm.Reason]int
	lastFailureAt time.Time
	lastProbeAt   time.Time
	cooldown      span
	disabled      span
	blocked       span
}

// span is one recorded window.
type span struct {
	until  time.Time
	reason llm.Reason
	model  string
	stated bool
}

// startSession is a session that exists when the drill begins.
type startSession struct {
	name                                                string
	agent                                               string
	override, overrideSource, overrideOrigin            string
	pin, pinSource                                      string
	noticeSelected, noticeActive, noticeReason          string
	compactions                                         int
	switchPending                                       bool
	overrideRef, originRef, noticeSelectedR, noticeActR llm.ModelRef
}

// rule is how the model APIs behave for some requests; the first that matches answers.
type rule struct {
	provider, model string
	profile         llm.ProfileID
	from, until     time.Time // until zero = for ever
	times           int       // 0 = any number
	used            int
	answer          answer
}

// matches reports whether the rule answers a request that starts now.
func (r *rule) matches(ref llm.ModelRef, p llm.ProfileID, now time.Time) bool {
	return (r.provider == "" || r.provider == ref.Provider) &&
		(r.model == "" || r.model == ref.Model) &&
		(r.profile == "" || r.profile == p) &&
		!now.Before(r.from) && (r.until.IsZero() || now.Before(r.until)) &&
		(r.times == 0 || r.used < r.times)
}

// answer is what a rule answers; exactly one kind is set, latency apart.
type answer struct {
	text    *string
	status  int
	headers map[string]string
	body    []byte
	hang    bool
	cut     *string
	empty   bool
	tool    string
	failure string // transport text
	latency time.Duration
}

// event is something that happens from outside.
type event struct {
	at      time.Time
	kind    eventKind
	session string
	text    string
	image   bool
	model   string
	chain   []string // cron fallbacks; nil = none given
	profile llm.ProfileID
	config  *config.Config
}

type eventKind uint8

const (
	eventUser eventKind = iota + 1
	eventCron
	eventHeartbeat
	eventStop
	eventRestart
	eventConfig
	eventLogin
	eventRemove
	eventCompact
)

// maxEvents bounds what repeated events may unfold to.
const maxEvents = 200_000

// parse reads a scenario. Its error names file, line and key.
func parse(name string, data []byte, env func(string) (string, bool)) (*scenario, error) {
	root, err := config.Tree(name, data)
	if err != nil {
		return nil, err
	}
	p := &parser{file: name, env: env, s: &scenario{start: defaultStart, orders: map[string][]llm.ProfileID{}}}
	if root == nil {
		return nil, &config.Error{Problems: []config.Problem{{File: name, Text: "the scenario is empty", Hint: "it needs at least events"}}}
	}
	p.scenario(root)
	if len(p.problems) == 0 {
		for _, check := range p.checks {
			check()
		}
	}
	if len(p.problems) > 0 {
		slices.SortStableFunc(p.problems, func(a, b config.Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, &config.Error{Problems: p.problems}
	}
	return p.s, nil
}

// scenario reads the top level: first what the rest depends on (start, env), then the rest in
// order.
func (p *parser) scenario(root ast.Node) {
	nodes := map[string]ast.Node{}
	p.section(root, "", keys{
		"start":    func(n ast.Node, at string) { p.s.start = p.moment(n, at) },
		"env":      func(n ast.Node, at string) { p.s.env = p.texts(n, at) },
		"config":   func(n ast.Node, _ string) { nodes["config"] = n },
		"store":    func(n ast.Node, _ string) { nodes["store"] = n },
		"sessions": func(n ast.Node, _ string) { nodes["sessions"] = n },
		"world":    func(n ast.Node, _ string) { nodes["world"] = n },
		"events":   func(n ast.Node, _ string) { nodes["events"] = n },
		"until":    func(n ast.Node, _ string) { nodes["until"] = n },
	})
	p.s.config, p.s.warnings = p.configuration(nodes["config"], "config")
	if n := nodes["store"]; n != nil {
		p.store(n, "store")
	}
	if n := nodes["sessions"]; n != nil {
		p.table(n, "sessions", p.session)
	}
	if n := nodes["world"]; n != nil {
		p.list(n, "world", p.rule)
	}
	if n := nodes["until"]; n != nil {
		p.s.until = p.moment(n, "until")
	}
	if n := nodes["events"]; n != nil {
		p.list(n, "events", p.event)
	}
	if len(p.s.events) == 0 {
		p.fail(root, "events", "nothing happens", "add at least one event")
	}
}

// configuration reads a whole product configuration inside the scenario.
func (p *parser) configuration(n ast.Node, at string) (*config.Config, []config.Warning) {
	c, warnings, err := config.ParseNode(p.file, n, config.Options{Env: p.lookup, AnyProvider: true})
	if err != nil {
		p.adopt(at, err)
		return nil, nil
	}
	return c, warnings
}

// lookup finds an environment variable: the scenario's own, else the process's.
func (p *parser) lookup(name string) (string, bool) {
	if v, ok := p.s.env[name]; ok {
		return v, true
	}
	return p.env(name)
}

func (p *parser) store(n ast.Node, at string) {
	p.section(n, at, keys{
		"profiles":   func(n ast.Node, at string) { p.list(n, at, p.profile) },
		"usageStats": func(n ast.Node, at string) { p.table(n, at, p.usage) },
		"order": func(n ast.Node, at string) {
			p.table(n, at, func(provider string, n ast.Node, at string) {
				order := []llm.ProfileID{}
				p.list(n, at, func(n ast.Node, at string) { order = append(order, p.profileID(n, at)) })
				p.s.orders[llm.NormalizeProvider(provider)] = order
			})
		},
	})
}

func (p *parser) profile(n ast.Node, at string) {
	x := profile{kind: llm.KindAPIKey}
	p.section(n, at, keys{
		"id":      func(n ast.Node, at string) { x.id = p.profileID(n, at) },
		"type":    func(n ast.Node, at string) { x.kind = llm.CredentialKind(p.word(n, at, "api_key", "oauth", "token")) },
		"mode":    func(n ast.Node, at string) { x.kind = llm.CredentialKind(p.word(n, at, "api_key", "oauth", "token")) },
		"expires": func(n ast.Node, at string) { x.expires = p.moment(n, at) },
		"refresh": func(n ast.Node, at string) { x.refresh = p.word(n, at, "ok", "invalid_grant", "timeout") },
		"email":   func(n ast.Node, at string) { x.email = p.text(n, at) },
		"provider": func(n ast.Node, at string) {
			if want := llm.NormalizeProvider(p.text(n, at)); x.id != "" && want != x.id.Provider() {
				p.fail(n, at, fmt.Sprintf("the id belongs to provider %s", x.id.Provider()), "")
			}
		},
	})
	switch {
	case x.id == "":
		p.fail(n, at+".id", "a profile needs an id such as alpha:p1", "")
	case x.refresh != "" && x.kind != llm.KindOAuth:
		p.fail(n, at+".refresh", "only oauth profiles are refreshed", "add type: oauth")
	case p.s.stored(x.id):
		p.fail(n, at+".id", fmt.Sprintf("%s stands here twice", x.id), "")
	}
	p.s.profiles = append(p.s.profiles, x)
}

// stored reports whether the scenario begins with the credential.
func (s *scenario) stored(id llm.ProfileID) bool {
	return slices.ContainsFunc(s.profiles, func(x profile) bool { return x.id == id })
}

func (p *parser) usage(id string, n ast.Node, at string) {
	u := usage{profile: llm.ProfileID(id), failureCounts: map[llm.Reason]int{}}
	moment := func(to *time.Time) func(ast.Node, string) {
		return func(n ast.Node, at string) { *to = p.moment(n, at) }
	}
	reason := func(to *llm.Reason) func(ast.Node, string) {
		return func(n ast.Node, at string) { *to = p.reason(n, at) }
	}
	if u.profile.Provider() == "" || u.profile.Name() == "" {
		p.fail(n, at, fmt.Sprintf("%q is not a profile id", id), "an id is provider:name, such as alpha:p1")
	}
	text := func(to *string) func(ast.Node, string) {
		return func(n ast.Node, at string) { *to = p.text(n, at) }
	}
	p.section(n, at, keys{
		"lastUsed":       moment(&u.lastUsed),
		"errorCount":     func(n ast.Node, at string) { u.errorCount = p.number(n, at) },
		"lastFailureAt":  moment(&u.lastFailureAt),
		"lastProbeAt":    moment(&u.lastProbeAt),
		"cooldownUntil":  moment(&u.cooldown.until),
		"cooldownReason": reason(&u.cooldown.reason),
		"cooldownModel":  text(&u.cooldown.model),
		"cooldownStated": func(n ast.Node, at string) { u.cooldown.stated = p.flag(n, at) },
		"disabledUntil":  moment(&u.disabled.until),
		"disabledReason": reason(&u.disabled.reason),
		"blockedUntil":   moment(&u.blocked.until),
		"blockedReason":  reason(&u.blocked.reason),
		"blockedModel":   text(&u.blocked.model),
		"failureCounts": func(n ast.Node, at string) {
			p.table(n, at, func(r string, n ast.Node, at string) { u.failureCounts[llm.Reason(r)] = p.number(n, at) })
		},
	})
	p.s.usage = append(p.s.usage, u)
}

func (p *parser) session(name string, n ast.Node, at string) {
	x := startSession{name: name}
	text := func(to *string) func(ast.Node, string) {
		return func(n ast.Node, at string) { *to = p.text(n, at) }
	}
	model := func(to *string, ref *llm.ModelRef) func(ast.Node, string) {
		return func(n ast.Node, at string) {
			*to = p.text(n, at)
			r, err := llm.ParseRef(*to)
			if err != nil {
				p.fail(n, at, err.Error(), "")
			}
			*ref = r
		}
	}
	p.section(n, at, keys{
		"agent": func(n ast.Node, at string) {
			x.agent = p.name(n, at)
			p.checks = append(p.checks, func() { p.agentExists(n, at, x.agent) })
		},
		"modelOverride":             model(&x.override, &x.overrideRef),
		"modelOverrideSource":       func(n ast.Node, at string) { x.overrideSource = p.word(n, at, "user", "auto") },
		"modelOverrideOrigin":       model(&x.overrideOrigin, &x.originRef),
		"authProfileOverride":       func(n ast.Node, at string) { x.pin = string(p.profileID(n, at)) },
		"authProfileOverrideSource": func(n ast.Node, at string) { x.pinSource = p.word(n, at, "user", "auto") },
		"fallbackNoticeSelected":    model(&x.noticeSelected, &x.noticeSelectedR),
		"fallbackNoticeActive":      model(&x.noticeActive, &x.noticeActR),
		"fallbackNoticeReason":      text(&x.noticeReason),
		"compactionCount":           func(n ast.Node, at string) { x.compactions = p.number(n, at) },
		"liveModelSwitchPending":    func(n ast.Node, at string) { x.switchPending = p.flag(n, at) },
	})
	p.s.sessions = append(p.s.sessions, x)
}

// agentExists checks that some configuration of the drill knows the agent.
func (p *parser) agentExists(n ast.Node, at, id string) {
	var known []string
	for _, c := range p.configs() {
		known = append(known, c.AgentIDs()...)
	}
	if !slices.Contains(known, id) {
		slices.Sort(known)
		p.fail(n, at, fmt.Sprintf("there is no agent %q", id), "known: "+strings.Join(slices.Compact(known), ", "))
	}
}

// modelExists checks that some configuration of the drill makes a model of the text.
func (p *parser) modelExists(n ast.Node, at, text string) {
	for _, c := range p.configs() {
		if choice, err := c.Resolve(text, config.Known{}); err == nil && !choice.Guessed {
			return
		}
	}
	p.fail(n, at, fmt.Sprintf("%q is neither provider/model nor an alias", text), "write for example alpha/a1")
}

// configs returns the configuration that the drill begins with and those it is reloaded to.
func (p *parser) configs() []*config.Config {
	list := []*config.Config{p.s.config}
	for _, e := range p.s.events {
		if e.config != nil {
			list = append(list, e.config)
		}
	}
	return list
}
