package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"understudy/provider/discover"
)

// greet prints, in a few lines, what was found, where to open the page, and the next step. On a terminal
// the address may hold the page's token; anywhere else it may end up in a log.
func (a *App) greet(ctx context.Context, w io.Writer) {
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
	for _, text := range a.unserved(ctx) {
		line("warning", text)
	}
	next := "write a message; /help lists what else you can do"
	if a.gateway != nil {
		line("page", a.pageText(w))
		next = "open the page, or talk here: bot chat"
	}
	if s.found.Source == discover.SourceSim {
		next += "\n           for a real model export ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama"
	}
	line("next", next)
}

// pageText is where the page is. The token that was made up for this start opens it, but only somebody who
// watches is to see it; one that was configured is known to whom it may concern.
func (a *App) pageText(w io.Writer) string {
	f, _ := w.(*os.File)
	switch {
	case !a.cfg().Gateway.Token.IsZero():
		return a.gateway.URL()
	case f != nil && term.IsTerminal(int(f.Fd())):
		return a.gateway.SignInURL()
	}
	return a.gateway.URL() + " (bot page prints the address that signs you in)"
}

// unserved lists the models of the default agent that nobody could be asked with, and how to change that.
func (a *App) unserved(ctx context.Context) []string {
	s := a.current.Load()
	health, err := a.health(ctx, s.cfg.DefaultAgent())
	if err != nil {
		return nil // told as what it is
	}
	return s.unserved(s.cfg.DefaultAgent(), health, a.opts.Clock.Now())
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
