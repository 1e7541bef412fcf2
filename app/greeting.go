package app

import (
	"fmt"
	"io"
	"strings"

	"understudy/provider/discover"
)

// greet prints, in a few lines, what was found, where to open the page, and the next step. It goes
// to the person who started the bot and nowhere else: the address holds the page's token.
func (a *App) greet(w io.Writer) {
	s := a.current.Load()
	m := s.cfg.Agent("").Models
	fmt.Fprintf(w, "Understudy %s\n", a.opts.Version)
	if s.cfg.Path != "" {
		fmt.Fprintf(w, "  config   %s\n", s.cfg.Path)
	} else {
		fmt.Fprintln(w, "  config   none; using what I found:")
		for _, l := range s.found.Lines {
			fmt.Fprintf(w, "           %s\n", l)
		}
	}
	fmt.Fprintf(w, "  state    %s\n", a.state)
	line := m.Primary.String()
	if len(m.Fallbacks) > 0 {
		line += ", understudies: " + strings.Join(refStrings(m.Fallbacks), ", ")
	}
	fmt.Fprintf(w, "  model    %s\n", line)
	if a.gateway != nil {
		fmt.Fprintf(w, "  chat     %s\n", a.gateway.SignInURL())
	}
	for _, u := range s.cfg.Unavailable {
		fmt.Fprintf(w, "  warning  %s\n", u.Problem)
	}
	switch {
	case s.found.Source == discover.SourceSim:
		fmt.Fprintln(w, "  next     no model is set up yet: export ANTHROPIC_API_KEY or OPENAI_API_KEY, or: bot config init")
	case s.cfg.Path == "":
		fmt.Fprintln(w, "  next     bot config init writes a commented configuration, for channels and your own chain")
	}
}
