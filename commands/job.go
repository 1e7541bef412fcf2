package commands

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Bounds of what is shown of scheduled tasks.
const (
	maxJobs    = 20
	maxRuns    = 10
	maxPrompt  = 300 // characters
	maxExcerpt = 200
)

// found picks the task that a person means: by id, by name, or by the beginning of the id.
func found(jobs []Job, what, list string) (Job, error) {
	if what == "" {
		return Job{}, &Refusal{"Say which one, by its id or name. " + list + " shows them."}
	}
	var begins []Job
	for _, fits := range []func(Job) bool{
		func(j Job) bool { return strings.EqualFold(j.ID, what) },
		func(j Job) bool { return strings.EqualFold(j.Name, what) },
		func(j Job) bool { return len(j.ID) > len(what) && strings.EqualFold(j.ID[:len(what)], what) },
	} {
		begins = begins[:0]
		for _, j := range jobs {
			if fits(j) {
				begins = append(begins, j)
			}
		}
		switch len(begins) {
		case 0:
		case 1:
			return begins[0], nil
		default:
			return Job{}, &Refusal{fmt.Sprintf("%s means %d of them; use an id. %s shows them.", quote(what), len(begins), list)}
		}
	}
	return Job{}, &Refusal{fmt.Sprintf("There is no %s. %s shows what there is.", quote(what), list)}
}

// Upcoming lists the next runs of a task, in its own zone: which one is said where it is not the
// reader's.
func (r *Registry) Upcoming(agent string, j Job) string {
	if len(j.Next) == 0 {
		return "never"
	}
	now, zone := r.deps.Clock.Now(), r.deps.Zone(agent)
	parts := make([]string, len(j.Next))
	for i, t := range j.Next {
		parts[i] = t.Format("Mon 2 Jan 15:04")
		if t.Year() != now.In(t.Location()).Year() {
			parts[i] = t.Format("Mon 2 Jan 2006 15:04")
		}
	}
	text := strings.Join(parts, ", ")
	if zone == nil {
		zone = time.UTC
	}
	if own := j.Next[0]; own.Format("-0700") != own.In(zone).Format("-0700") {
		text += " " + own.Format("MST")
	}
	return text
}

// jobLine is a task in a list.
func (r *Registry) jobLine(agent string, j Job) string {
	text := fmt.Sprintf("• %s %s — %s", code(j.ID), clip(j.Name, maxQuote), j.Schedule)
	switch {
	case j.Running:
		text += " · running"
	case !j.Enabled && j.OffBecause != "":
		text += " · off: " + j.OffBecause
	case !j.Enabled:
		text += " · off"
	case len(j.Next) > 0:
		text += " · next " + r.Upcoming(agent, Job{Next: j.Next[:1]})
	}
	if j.Failures > 0 {
		text += fmt.Sprintf(" · failed %d×", j.Failures)
	}
	return text
}

// jobLines is a list of tasks; empty is said when there are none.
func (r *Registry) jobLines(c Call, jobs []Job, empty string) Reply {
	if len(jobs) == 0 {
		return Reply{Text: empty}
	}
	var lines []string
	for i, j := range jobs {
		if i == maxJobs {
			lines = append(lines, fmt.Sprintf("… and %d more", len(jobs)-i))
			break
		}
		lines = append(lines, r.jobLine(c.Agent, j))
	}
	return Reply{Text: strings.Join(lines, "\n")}
}

// made confirms a new or changed task, with what it comes to.
func (r *Registry) made(c Call, what string, j Job) Reply {
	return Reply{Text: fmt.Sprintf("⏰ %s %s (%s), %s.\nNext: %s", what, clip(j.Name, maxQuote), code(j.ID), j.Schedule, r.Upcoming(c.Agent, j))}
}

// jobCard is everything about a task.
func (r *Registry) jobCard(c Call, j Job) Reply {
	lines := []string{r.jobLine(c.Agent, j)}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if j.Enabled {
		add("Next: %s", r.Upcoming(c.Agent, j))
	}
	where := "nowhere; the log keeps it"
	if j.Delivery != "" {
		where = j.Delivery
	}
	model := "the agent's"
	if j.Model != "" {
		model = code(j.Model)
	}
	add("Agent %s · session %s · model %s · result to %s", j.Agent, j.Session, model, where)
	if !j.LastRun.IsZero() {
		last := fmt.Sprintf("Last run: %s, %s", moment(j.LastRun, r.deps.Clock.Now(), r.deps.Zone(c.Agent)), j.LastStatus)
		if j.LastError != "" {
			last += " — " + clip(j.LastError, maxPreview)
		}
		lines = append(lines, last)
	}
	add("Text: %s", clip(strings.Join(strings.Fields(j.Prompt), " "), maxPrompt))
	return Reply{Text: strings.Join(lines, "\n")}
}

// runLines is the log of a task.
func (r *Registry) runLines(ctx context.Context, c Call, j Job) (Reply, error) {
	runs, err := r.deps.Cron.Runs(ctx, j.ID, maxRuns)
	if err != nil {
		return Reply{}, err
	}
	if len(runs) == 0 {
		return Reply{Text: fmt.Sprintf("%s has not run yet.", clip(j.Name, maxQuote))}, nil
	}
	lines := []string{fmt.Sprintf("⏰ Last runs of %s", clip(j.Name, maxQuote))}
	for _, x := range runs {
		at := x.Started
		if at.IsZero() {
			at = x.Scheduled
		}
		line := fmt.Sprintf("• %s %s", moment(at, r.deps.Clock.Now(), r.deps.Zone(c.Agent)), x.Status)
		if x.Reason != "" {
			line += " — " + clip(x.Reason, maxPreview)
		}
		if !x.Model.IsZero() {
			line += " · " + x.Model.String()
			if x.StoodIn {
				line += " (stood in)"
			}
		}
		if !x.Finished.IsZero() && !x.Started.IsZero() {
			line += " · " + seconds(x.Finished.Sub(x.Started))
		}
		if text := strings.Join(strings.Fields(x.Excerpt), " "); text != "" {
			line += "\n   " + clip(text, maxExcerpt)
		}
		lines = append(lines, line)
	}
	return Reply{Text: strings.Join(lines, "\n")}, nil
}
