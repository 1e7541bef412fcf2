package commands

import (
	"context"
	"fmt"
	"strings"
)

func cronActions() []string {
	return []string{"list", "show", "add", "edit", "run", "runs", "enable", "disable", "remove"}
}

// cron looks after scheduled tasks (spec/chat.md §5.9).
func (r *Registry) cron(ctx context.Context, c Call, args string) (Reply, error) {
	action, rest := cutWord(args)
	switch action = strings.ToLower(action); action {
	case "", "list":
		all := strings.EqualFold(rest, "all")
		jobs, err := r.deps.Cron.List(ctx, all)
		if err != nil {
			return Reply{}, err
		}
		empty := "Nothing is scheduled. /help cron says how to begin."
		if !all {
			empty = "No task is on. /cron list all shows all there are; /help cron says how to make one."
		}
		return r.jobLines(c, jobs, empty), nil
	case "add":
		return r.cronAdd(ctx, c, rest)
	case "show", "edit", "run", "runs", "enable", "disable", "remove":
	default:
		return Reply{}, unknown("action", action, cronActions())
	}
	what, change := rest, ""
	if action == "edit" {
		if what, change = cutWord(rest); change == "" {
			return Reply{}, &Refusal{"Say what to change, for example " + code("/cron edit "+strings.TrimSpace(what+` schedule="every day at 9"`))}
		}
	}
	jobs, err := r.deps.Cron.List(ctx, true)
	if err != nil {
		return Reply{}, err
	}
	j, err := found(jobs, what, "/cron list all")
	if err != nil {
		return Reply{}, err
	}
	return r.cronDo(ctx, c, action, j, change)
}

// cronDo does something with one task.
func (r *Registry) cronDo(ctx context.Context, c Call, action string, j Job, change string) (Reply, error) {
	name := clip(j.Name, maxQuote)
	switch action {
	case "edit":
		p, err := readPatch(change)
		if err != nil {
			return Reply{}, err
		}
		if j, err = r.deps.Cron.Edit(ctx, j.ID, p); err != nil {
			return Reply{}, err
		}
		return r.made(c, "Changed", j), nil
	case "run":
		return Reply{Text: fmt.Sprintf("⏰ %s runs now. /cron runs %s shows what comes of it.", name, j.ID)}, r.deps.Cron.Run(ctx, j.ID)
	case "runs":
		return r.runLines(ctx, c, j)
	case "enable":
		j, err := r.deps.Cron.Enable(ctx, j.ID)
		return r.made(c, "On:", j), err
	case "disable":
		_, err := r.deps.Cron.Disable(ctx, j.ID)
		return Reply{Text: fmt.Sprintf("⏰ Off: %s (%s). A run that is under way goes on.", name, code(j.ID))}, err
	case "remove":
		return Reply{Text: fmt.Sprintf("⏰ Removed: %s (%s).", name, code(j.ID))}, r.deps.Cron.Remove(ctx, j.ID)
	}
	return r.jobCard(c, j), nil
}

func (r *Registry) cronAdd(ctx context.Context, c Call, args string) (Reply, error) {
	d, err := readDraft(args)
	if err != nil {
		return Reply{}, err
	}
	j, err := r.deps.Cron.Add(ctx, c, d)
	if err != nil {
		return Reply{}, err
	}
	return r.made(c, "Scheduled", j), nil
}
