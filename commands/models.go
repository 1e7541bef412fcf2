package commands

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"understudy/chat"
	"understudy/llm"
)

const (
	maxButtons = 100 // models that /model offers to press
	maxPicked  = 30  // models that /model numbers
	pageSize   = 20  // models on a page of /models
)

// pick is /model without an argument: what is selected, and a numbered list to choose from.
func (r *Registry) pick(ctx context.Context, c Call) (Reply, error) {
	v, err := r.look(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	head := []string{v.modelLine()}
	if line := v.pinnedLine(); line != "" {
		head = append(head, line)
	}
	var b strings.Builder
	b.WriteString(strings.Join(head, "\n") + "\n\n")
	reply := Reply{}
	list := r.choices(ctx, c)
	for i, ref := range list {
		if i < maxPicked || ref == v.sel.Ref {
			fmt.Fprintf(&b, "%d. %s\n", i+1, v.described(ctx, ref))
		}
	}
	if len(list) > maxPicked {
		b.WriteString("… /models shows all.\n")
	}
	for _, ref := range pressed(list, v.sel.Ref) {
		label := ref.String()
		if alias := r.deps.Models.Alias(ref); alias != "" {
			label += " (" + alias + ")"
		}
		reply.Buttons = append(reply.Buttons, chat.Button{
			Label: label, Command: "/model " + ref.String(), Group: ref.Provider, Chosen: ref == v.sel.Ref,
		})
	}
	b.WriteString("\nChoose with /model <number>, or /model default.")
	reply.Text = b.String()
	return reply, nil
}

// pressed picks what of a list is offered to press. Where that is not all, no provider takes the room of
// the others, and what is selected is among it.
func pressed(list []llm.ModelRef, selected llm.ModelRef) []llm.ModelRef {
	for share := maxButtons; ; share-- {
		var some []llm.ModelRef
		taken := map[string]int{}
		for _, ref := range list {
			if taken[ref.Provider]++; taken[ref.Provider] <= share || ref == selected {
				some = append(some, ref)
			}
		}
		if len(some) <= maxButtons || share == 1 {
			return some[:min(len(some), maxButtons)]
		}
	}
}

// described is a model with what marks it.
func (v view) described(ctx context.Context, ref llm.ModelRef) string {
	var marks []string
	if v.sel.Ref == ref {
		marks = append(marks, "selected")
	}
	if ref == v.models.Primary {
		marks = append(marks, "primary")
	}
	if i := slices.Index(v.models.Fallbacks, ref); i >= 0 {
		marks = append(marks, fmt.Sprintf("fallback %d", i+1))
	}
	if until := v.blocked(ctx, ref); until != "" && !v.blind {
		marks = append(marks, until)
	}
	text := code(ref.String())
	if alias := v.r.deps.Models.Alias(ref); alias != "" {
		text += " (" + alias + ")"
	}
	if len(marks) > 0 {
		text += " — " + strings.Join(marks, ", ")
	}
	return text
}

func (r *Registry) listModels(ctx context.Context, c Call, args string) (Reply, error) {
	v, err := r.look(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	provider, page := "", 1
	for _, word := range strings.Fields(args) {
		if n, err := strconv.Atoi(word); err == nil {
			page = max(n, 1)
			continue
		}
		provider = llm.NormalizeProvider(word)
	}
	list := r.choices(ctx, c)
	if provider != "" {
		list = slices.DeleteFunc(list, func(ref llm.ModelRef) bool { return ref.Provider != provider })
	}
	switch {
	case len(list) == 0 && provider != "":
		return Reply{Text: fmt.Sprintf("There is no model of %s here. /models shows all.", quote(provider))}, nil
	case len(list) == 0:
		return Reply{Text: "No model is configured yet."}, nil
	}
	pages := (len(list) + pageSize - 1) / pageSize
	page = min(page, pages)
	var lines []string
	for _, ref := range list[(page-1)*pageSize : min(page*pageSize, len(list))] {
		lines = append(lines, "• "+v.described(ctx, ref))
	}
	if pages > 1 {
		next := strings.Join(append(strings.Fields("/models "+provider), strconv.Itoa(page%pages+1)), " ")
		lines = append(lines, fmt.Sprintf("Page %d of %d; the next one: %s", page, pages, next))
	}
	return Reply{Text: strings.Join(lines, "\n")}, nil
}

// credentials is /model status: per provider its endpoint and profiles, without secrets.
func (r *Registry) credentials(ctx context.Context, c Call) (Reply, error) {
	if !c.details() {
		return Reply{Text: "Only the bot owner can see credentials here."}, nil
	}
	v, err := r.look(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	if v.blind {
		return Reply{Text: "⚠️ The stored credentials cannot be read; /status says more."}, nil
	}
	var lines, seen []string
	for _, ref := range r.choices(ctx, c) {
		if slices.Contains(seen, ref.Provider) {
			continue
		}
		seen = append(seen, ref.Provider)
		lines = append(lines, v.providerLines(ctx, ref.Provider)...)
	}
	if len(lines) == 0 {
		return Reply{Text: "No model is configured yet."}, nil
	}
	return Reply{Text: strings.Join(lines, "\n")}, nil
}

func (v view) providerLines(ctx context.Context, provider string) []string {
	title := "**" + provider + "**"
	if host, api := v.r.deps.Endpoint(provider); host != "" || api != "" {
		title += " · " + strings.Trim(host+" · "+api, " ·")
	}
	lines := []string{title}
	used := v.r.deps.Models.Profiles(ctx, v.call.Agent, llm.ModelRef{Provider: provider})
	for _, p := range used {
		lines = append(lines, fmt.Sprintf("• %s — %s", v.profile(p), v.profileState(p)))
	}
	for _, p := range v.health.Profiles { // what is stored beyond the order, or cannot be used any more
		if p.ID.Provider() != provider || slices.Contains(used, p.ID) {
			continue
		}
		why := "not in the order"
		switch {
		case !p.HasSecret:
			why = "without a secret"
		case !p.Expires.IsZero() && !p.Expires.After(v.now) && !p.HasRefresh:
			why = "expired " + v.when(p.Expires)
		}
		lines = append(lines, fmt.Sprintf("• %s — not used: %s", v.profile(p.ID), why))
	}
	if len(lines) == 1 {
		lines = append(lines, "no credential")
	}
	return lines
}

// profile names a profile with its kind.
func (v view) profile(id llm.ProfileID) string {
	kind := v.r.deps.Models.Kind(id)
	for _, p := range v.health.Profiles {
		if p.ID == id {
			kind = p.Kind
		}
	}
	if kind == "" {
		return code(string(id))
	}
	return fmt.Sprintf("%s (%s)", code(string(id)), kind)
}

// profileState says in words how a profile is.
func (v view) profileState(p llm.ProfileID) string {
	var parts []string
	for _, w := range v.unhealthy() {
		if w.key.Profile == p {
			parts = append(parts, v.text(w))
		}
	}
	if len(parts) == 0 {
		return "ok"
	}
	return strings.Join(parts, "; ")
}
