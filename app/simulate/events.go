package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"understudy/llm"
)

// event reads one entry of `events`; a repeated one unfolds.
func (p *parser) event(n ast.Node, at string) {
	e := event{at: p.s.start}
	var every time.Duration
	var from time.Time
	until := p.s.until
	kind := func(k eventKind, f func(ast.Node, string)) func(ast.Node, string) {
		return func(n ast.Node, at string) {
			if e.kind != 0 {
				p.fail(n, at, "one event does one thing", "write a second event")
			}
			e.kind = k
			f(n, at)
		}
	}
	session := func(n ast.Node, at string) { e.session = p.name(n, at) }
	crowd := 0
	span := map[string]ast.Node{}
	p.section(n, at, keys{
		"at":        func(n ast.Node, at string) { e.at = p.moment(n, at) },
		"every":     func(n ast.Node, at string) { every = p.interval(n, at) },
		"from":      func(n ast.Node, at string) { span["from"], from = n, p.moment(n, at) },
		"until":     func(n ast.Node, at string) { span["until"], until = n, p.moment(n, at) },
		"session":   func(n ast.Node, at string) { span["session"] = n; session(n, at) },
		"sessions":  func(n ast.Node, at string) { span["sessions"], crowd = n, p.number(n, at) },
		"image":     func(n ast.Node, at string) { span["image"] = n; e.image = p.flag(n, at) },
		"user":      kind(eventUser, func(n ast.Node, at string) { e.text = p.text(n, at) }),
		"heartbeat": kind(eventHeartbeat, session),
		"stop":      kind(eventStop, session),
		"compact":   kind(eventCompact, session),
		"login":     kind(eventLogin, func(n ast.Node, at string) { e.profile = p.profileID(n, at) }),
		"remove": kind(eventRemove, func(n ast.Node, at string) {
			e.profile = p.profileID(n, at)
			p.checks = append(p.checks, func() { p.removable(n, at, e.profile) })
		}),
		"config":  kind(eventConfig, func(n ast.Node, at string) { e.config, _ = p.configuration(n, at) }),
		"restart": kind(eventRestart, p.switched),
		"cron":    kind(eventCron, func(n ast.Node, at string) { p.cron(n, at, &e) }),
	})
	if e.kind == 0 {
		p.fail(n, at, "this event does nothing", "give it user, cron, heartbeat, stop, restart, config, login, remove or compact")
		return
	}
	p.belongs(n, at, e, span)
	if every <= 0 {
		for _, key := range []string{"from", "until"} {
			if span[key] != nil {
				p.fail(span[key], at+"."+key, "only a repeated event has "+key, "add every: <duration>, or write at")
			}
		}
		p.unfold(n, at, e, crowd)
		return
	}
	if from.IsZero() {
		from = e.at
	}
	if until.IsZero() {
		p.fail(n, at, "a repeated event needs an end", "add until to it or to the scenario")
		return
	}
	for t := from; t.Before(until); t = t.Add(every) {
		e.at = t
		if !p.unfold(n, at, e, crowd) {
			return
		}
	}
}

// unfold adds an event, or one for each of so many sessions: name1, name2 and so on.
func (p *parser) unfold(n ast.Node, at string, e event, crowd int) bool {
	name := e.session
	for i := range max(crowd, 1) {
		if len(p.s.events) >= maxEvents {
			p.fail(n, at, fmt.Sprintf("more than %d events", maxEvents), "repeat less often")
			return false
		}
		if crowd > 0 {
			e.session = fmt.Sprintf("%s%d", name, i+1)
		}
		p.s.events = append(p.s.events, e)
	}
	return true
}

// belongs checks that session and image stand beside what they belong to.
func (p *parser) belongs(n ast.Node, at string, e event, given map[string]ast.Node) {
	if e.kind == eventUser {
		if e.session == "" {
			p.fail(n, at+".session", "whose session?", "add session: <name>")
		}
		return
	}
	for _, key := range []string{"session", "sessions", "image"} {
		if given[key] != nil {
			p.fail(given[key], at+"."+key, "this belongs beside user", "cron has its own session; heartbeat, stop and compact name theirs")
		}
	}
}

// removable checks that the credential is there at some moment of the drill.
func (p *parser) removable(n ast.Node, at string, id llm.ProfileID) {
	login := func(e event) bool { return e.kind == eventLogin && e.profile == id }
	if !p.s.stored(id) && !slices.ContainsFunc(p.s.events, login) {
		p.fail(n, at, fmt.Sprintf("there is no profile %s", id), "store.profiles lists what is stored")
	}
}

// interval reads a duration that takes the drill forward.
func (p *parser) interval(n ast.Node, at string) time.Duration {
	d := p.duration(n, at)
	if d <= 0 {
		p.fail(n, at, "a repeated event needs a time between", "write for example 30s, 5m or 1h")
	}
	return d
}

func (p *parser) cron(n ast.Node, at string, e *event) {
	p.section(n, at, keys{
		"session": func(n ast.Node, at string) { e.session = p.name(n, at) },
		"message": func(n ast.Node, at string) { e.text = p.text(n, at) },
		"model":   func(n ast.Node, at string) { e.model = p.model(n, at) },
		"fallbacks": func(n ast.Node, at string) {
			e.chain = []string{}
			p.list(n, at, func(n ast.Node, at string) { e.chain = append(e.chain, p.model(n, at)) })
		},
	})
	if e.session == "" {
		e.session = "cron"
	}
}

// model reads a model reference or an alias.
func (p *parser) model(n ast.Node, at string) string {
	text := p.name(n, at)
	p.checks = append(p.checks, func() { p.modelExists(n, at, text) })
	return text
}
