package commands

import (
	"context"
	"fmt"
	"strings"
)

// The groups of /commands.
const (
	groupChat     = "Conversation"
	groupModel    = "Models"
	groupOperator = "Operation"
)

// catalogue lists the commands in the order of help.
func catalogue(withSim bool) []Spec {
	specs := []Spec{
		{Name: "help", Group: groupChat, Help: "the most useful commands", run: (*Registry).help},
		{Name: "commands", Group: groupChat, Help: "all commands", run: (*Registry).list},
		{Name: "status", Group: groupModel, Help: "model, credentials, context and what is wrong", run: (*Registry).status},
		{Name: "why", Group: groupModel, Help: "how the last answer came about: who was asked, who failed, why", run: (*Registry).why},
		{Name: "model", Group: groupModel, Usage: "[number | alias | provider/model[@profile] | default | status]", Help: "show or choose the model of this conversation", run: (*Registry).model},
		{Name: "models", Group: groupModel, Usage: "[provider] [page]", Help: "all models that can be chosen", run: (*Registry).models},
		{Name: "failover", Group: groupModel, Owner: true, Help: "the chain of this conversation with the state of every candidate", run: (*Registry).failover},
		{Name: "new", Group: groupChat, Usage: "[model | first message]", Help: "begin a new conversation", Lane: true, Long: true, run: (*Registry).fresh},
		{Name: "reset", Group: groupChat, Help: "begin again from nothing", Lane: true, run: (*Registry).reset},
		{Name: "stop", Group: groupChat, Help: "stop the answer that is being written", run: (*Registry).stop},
		{Name: "compact", Group: groupChat, Usage: "[what to keep in mind]", Help: "shorten the conversation so far", Lane: true, Long: true, run: (*Registry).compact},
		{Name: "think", Aliases: []string{"t", "thinking"}, Group: groupModel, Usage: "[off | minimal | low | medium | high | xhigh | default]", Help: "how long the model may think", run: (*Registry).think},
		{Name: "whoami", Aliases: []string{"id"}, Group: groupOperator, Help: "the ids the bot knows you and this place by", run: (*Registry).whoami},
	}
	if withSim {
		specs = append(specs, Spec{
			Name: "sim", Group: groupOperator, Usage: "[lead | understudy] [failure] [duration]", Owner: true,
			Help: "make the offline models fail, to watch the understudy step in", run: (*Registry).simulate,
		})
	}
	return specs
}

// helpful are the commands that /help shows.
var helpful = map[string]bool{
	"status": true, "why": true, "model": true, "models": true, "new": true, "stop": true, "compact": true, "whoami": true, "sim": true,
}

func (r *Registry) help(_ context.Context, c Call, _ string) (Reply, error) {
	var b strings.Builder
	b.WriteString("I answer with a language model, and with another one when that fails. Just write; these help:\n")
	for _, s := range r.specs {
		if helpful[s.Name] && (!s.Owner || c.Owner) {
			fmt.Fprintf(&b, "/%s — %s\n", s.Name, s.Help)
		}
	}
	b.WriteString("Full list: /commands")
	return Reply{Text: b.String()}, nil
}

func (r *Registry) list(_ context.Context, c Call, _ string) (Reply, error) {
	var b strings.Builder
	for _, g := range []string{groupChat, groupModel, groupOperator} {
		fmt.Fprintf(&b, "**%s**\n", g)
		for _, s := range r.specs {
			if s.Group != g || s.Hidden || (s.Owner && !c.Owner) {
				continue
			}
			fmt.Fprintf(&b, "`%s` — %s\n", strings.TrimSpace("/"+s.Name+" "+s.Usage), s.Help)
		}
		b.WriteString("\n")
	}
	return Reply{Text: strings.TrimSpace(b.String())}, nil
}

// Markdown writes the reference page of the commands.
func Markdown(specs []Spec) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nWritten as messages in every channel. Owner commands are for the ids in `commands.ownerAllowFrom`, for the first approved\nperson when there are none, and for whoever uses the web page or the terminal.\n")
	for _, g := range []string{groupChat, groupModel, groupOperator} {
		fmt.Fprintf(&b, "\n## %s\n\n| command | what it does | who |\n|---|---|---|\n", g)
		for _, s := range specs {
			if s.Group != g || s.Hidden {
				continue
			}
			who := "everybody admitted"
			if s.Owner {
				who = "owner"
			}
			usage := strings.ReplaceAll(strings.TrimSpace("/"+s.Name+" "+s.Usage), "|", "\\|")
			for _, a := range s.Aliases {
				usage += ", /" + a
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", usage, s.Help, who)
		}
	}
	return b.String()
}
