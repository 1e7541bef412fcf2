package simulate

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"

	"understudy/llm"
)

// event reads one entry of `events`; a repeated one unfolds.
func (p *parser) event(n ast.Node, at string) {
	e := event{at: p.s.start}
	var every time.Duration
	from, until := p.s.start, p.s.until
	kind := func(k eventKind, f func(ast.Node, string)) func(ast.Node, string) {
		return func(n ast.Node, at string) {
			if e.kind != 0 {
				p.fail(n, at, "one event does one thing", "write a second event")
			}
			e.kind = k
			f(n, at)
		}
	}
	session := func(n ast.Node, at string) { e.session = p.text(n, at) }
	p.section(n, at, keys{
		"at":        func(n ast.Node, at string) { e.at = p.moment(n, at) },
		"every":     func(n ast.Node, at string) { every = p.duration(n, at) },
		"from":      func(n ast.Node, at string) { from = p.moment(n, at) },
		"until":     func(n ast.Node, at string) { until = p.moment(n, at) },
		"session":   session,
		"image":     func(n ast.Node, at string) { e.image = p.flag(n, at) },
		"user":      kind(eventUser, func(n ast.Node, at string) { e.text = p.text(n, at) }),
		"heartbeat": kind(eventHeartbeat, session),
		"stop":      kind(eventStop, session),
		"compact":   kind(eventCompact, session),
		"login":     kind(eventLogin, func(n ast.Node, at string) { e.profile = llm.ProfileID(p.text(n, at)) }),
		"remove":    kind(eventRemove, func(n ast.Node, at string) { e.profile = llm.ProfileID(p.text(n, at)) }),
		"config":    kind(eventConfig, func(n ast.Node, _ string) { e.config, _ = p.configuration(n) }),
		"restart":   kind(eventRestart, func(n ast.Node, at string) { p.flag(n, at) }),
		"cron":      kind(eventCron, func(n ast.Node, at string) { p.cron(n, at, &e) }),
	})
	if e.kind == 0 {
		p.fail(n, at, "this event does nothing", "give it user, cron, heartbeat, stop, restart, config, login, remove or compact")
		return
	}
	if e.kind == eventUser && e.session == "" {
		p.fail(n, at, "whose session?", "add session: <name>")
	}
	if every <= 0 {
		p.s.events = append(p.s.events, e)
		return
	}
	if until.IsZero() {
		p.fail(n, at, "a repeated event needs an end", "add until to it or to the scenario")
		return
	}
	for t := from; t.Before(until); t = t.Add(every) {
		if len(p.s.events) >= maxEvents {
			p.fail(n, at, fmt.Sprintf("more than %d events", maxEvents), "repeat less often")
			return
		}
		e.at = t
		p.s.events = append(p.s.events, e)
	}
}

func (p *parser) cron(n ast.Node, at string, e *event) {
	p.section(n, at, keys{
		"session": func(n ast.Node, at string) { e.session = p.text(n, at) },
		"message": func(n ast.Node, at string) { e.text = p.text(n, at) },
		"model":   func(n ast.Node, at string) { e.model = p.text(n, at) },
		"fallbacks": func(n ast.Node, at string) {
			e.chain = []string{}
			p.list(n, at, func(n ast.Node, at string) { e.chain = append(e.chain, p.text(n, at)) })
		},
	})
	if e.session == "" {
		e.session = "cron"
	}
}
