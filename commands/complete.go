package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"understudy/chat"
)

// maxSuggestions is how many suggestions platforms can show.
const maxSuggestions = 25

// Complete suggests what may stand in an argument of a command, best first, for somebody who has typed
// prefix so far: what begins with it, then what holds it. Button.Command is what goes into the field.
// Who may not use the command is suggested nothing.
func (r *Registry) Complete(ctx context.Context, c Call, command, option, prefix string) []chat.Button {
	i, ok := r.byName[strings.ToLower(command)]
	if !ok {
		return nil
	}
	s := r.specs[i]
	if _, may := r.may(s, c); !may {
		return nil
	}
	at := slices.IndexFunc(s.Args, func(a Arg) bool { return a.Name == option })
	if at < 0 {
		return nil
	}
	a := s.Args[at]
	var all []chat.Button
	for _, word := range append(slices.Clone(a.Choices), a.Examples...) {
		all = append(all, chat.Button{Label: word, Command: word})
	}
	return matching(append(all, r.suggested(ctx, c, s, a.Suggest)...), prefix)
}

// suggested lists what there is.
func (r *Registry) suggested(ctx context.Context, c Call, s Spec, list Suggest) []chat.Button {
	var all []chat.Button
	add := func(label, command string) { all = append(all, chat.Button{Label: label, Command: command}) }
	switch list {
	case ListModels:
		for _, ref := range r.choices(ctx, c) {
			label := ref.String()
			if alias := r.deps.Models.Alias(ref); alias != "" {
				label = alias + " — " + label
			}
			add(label, ref.String())
		}
		add("default — the configured one", wordDefault)
		if s.Name == "model" {
			add("status — endpoints and credentials", "status")
		}
	case ListProviders:
		for _, ref := range r.choices(ctx, c) {
			add(ref.Provider, ref.Provider)
		}
	case ListCommands:
		for _, x := range r.specs {
			if x.visible(c.Owner) {
				add(x.Name+" — "+x.Help, x.Name)
			}
		}
	case ListJobs:
		jobs, err := r.deps.Cron.List(ctx, true)
		if err != nil {
			r.deps.Log.WarnContext(ctx, "tasks_not_listed", "error", err.Error())
		}
		for _, j := range jobs {
			add(fmt.Sprintf("%s — %s", clip(j.Name, maxQuote), j.ID), j.ID)
		}
	case NoList:
	}
	return all
}

// matching picks what fits to a text, the better the match the earlier, otherwise in the given order.
func matching(all []chat.Button, text string) []chat.Button {
	text = strings.ToLower(strings.TrimSpace(text))
	type ranked struct {
		chat.Button
		rank int
	}
	var fits []ranked
	seen := map[string]bool{}
	for _, b := range all {
		if rank := rankOf(b, text); rank > 0 && !seen[b.Command] {
			seen[b.Command] = true
			fits = append(fits, ranked{b, rank})
		}
	}
	slices.SortStableFunc(fits, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	var out []chat.Button
	for _, f := range fits[:min(len(fits), maxSuggestions)] {
		out = append(out, f.Button)
	}
	return out
}

// rankOf says how well a suggestion fits to a text in lower case: 1 = it is it, 2 = it begins with it,
// also behind the provider, 3 = it holds it, 0 = not at all.
func rankOf(b chat.Button, text string) int {
	command := strings.ToLower(b.Command)
	_, model, _ := strings.Cut(command, "/")
	name, _, _ := strings.Cut(strings.ToLower(b.Label), " — ") // what is behind explains it
	switch {
	case text != "" && (command == text || name == text):
		return 1
	case strings.HasPrefix(name, text), strings.HasPrefix(command, text), strings.HasPrefix(model, text):
		return 2
	case strings.Contains(name, text), strings.Contains(command, text):
		return 3
	}
	return 0
}
