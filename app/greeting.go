package app

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"understudy/provider/discover"
)

// greet prints, in a few lines, what was found, where to open the page, and the next step. It goes
// to the person who started the bot and nowhere else: the address holds the page's token.
func (a *App) greet(w io.Writer) {
	s := a.current.Load()
	line := func(what, text string) { fmt.Fprintf(w, "  %-8s %s\n", what, text) }
	fmt.Fprintf(w, "Understudy %s\n", a.opts.Version)
	if path := s.cfg.Path; path != "" {
		if whole, err := filepath.Abs(path); err == nil {
			path = whole
		}
		line("config", path)
	} else {
		line("config", "none; bot config init writes one to start from")
	}
	for _, l := range s.found.Lines {
		line("found", l)
	}
	line("models", chainText(s))
	for _, name := range a.platforms() {
		line("channel", name)
	}
	line("state", a.state)
	for _, u := range s.cfg.Unavailable {
		line("warning", u.Problem.String())
	}
	for _, err := range a.auth.problems() {
		line("warning", err.Error())
	}
	next := "write a message; /help lists what else you can do"
	if a.gateway != nil {
		line("page", a.gateway.SignInURL())
		next = "open the page, or talk here: bot chat"
	}
	if s.found.Source == discover.SourceSim {
		next += "\n           for a real model export ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama"
	}
	line("next", next)
}

// chainText is who answers, and who after it.
func chainText(s *snapshot) string {
	m := s.cfg.Agent("").Models
	text := strings.Join(append([]string{m.Primary.String()}, refStrings(m.Fallbacks)...), ", then ")
	if s.found.Source == discover.SourceSim {
		text += " (built in, offline: for trying out)"
	}
	return text
}

// platforms lists the accounts that connect to the outside.
func (a *App) platforms() []string {
	var list []string
	for _, x := range a.roster.all() {
		if x.platform {
			list = append(list, strings.TrimSuffix(x.key.Channel+" "+x.key.Name, " "))
		}
	}
	return list
}
