package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/failover/policy"
	"understudy/llm"
	"understudy/session"
)

const (
	maxSteps   = 30  // lines of /why
	maxPreview = 200 // characters of a provider's message
)

// decision mirrors what package reply stores of a turn.
type decision struct {
	At       time.Time     `json:"at"`
	Duration time.Duration `json:"duration"`
	Outcome  string        `json:"outcome"`
	Reason   llm.Reason    `json:"reason"`
	Selected llm.ModelRef  `json:"selected"`
	Model    llm.ModelRef  `json:"model"`
	Records  []Record      `json:"records"`
}

// Record is one candidate tried or skipped.
type Record struct {
	Provider  string        `json:"provider"`
	Model     string        `json:"model"`
	Profile   llm.ProfileID `json:"profile"`
	Skipped   bool          `json:"skipped"`
	Why       policy.Why    `json:"why"`
	Reason    llm.Reason    `json:"reason"` // "" = answered
	Detail    llm.Detail    `json:"detail"`
	Status    int           `json:"status"`
	Error     string        `json:"error"` // redacted preview, for operators
	StartedAt time.Time     `json:"startedAt"`
	Duration  time.Duration `json:"duration"`
	Until     time.Time     `json:"until"`
}

// why shows the decision trail of the last turn (spec/failover.md §11).
func (r *Registry) why(ctx context.Context, c Call, _ string) (Reply, error) {
	list, err := r.deps.Sessions.Decisions(ctx, c.Key, 1)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return Reply{}, err
	}
	t := r.trail(c)
	var lines []string
	if u, runs := r.deps.Underway(c.Key); runs {
		lines = u.lines(t)
	}
	if len(list) == 0 {
		if len(lines) == 0 {
			lines = []string{"Nothing has been answered here yet."}
		}
		return Reply{Text: strings.Join(lines, "\n")}, nil
	}
	var d decision
	if err := json.Unmarshal(list[0].Record, &d); err != nil {
		return Reply{}, fmt.Errorf("decision record: %w", err)
	}
	if len(lines) > 0 {
		lines = append(lines, "")
	}
	lines = append(append(lines, t.head(d)), t.steps(d.Records)...)
	return Reply{Text: strings.Join(lines, "\n")}, nil
}

// trail returns how a decision is rendered for whoever gave the command.
func (r *Registry) trail(c Call) trail {
	return trail{call: c, now: r.deps.Clock.Now(), zone: r.deps.Zone(c.Agent)}
}

// trail renders a decision for one reader.
type trail struct {
	call  Call
	now   time.Time
	zone  *time.Location
	brief bool // without profiles
}

// steps are the numbered lines of what was tried or skipped.
func (t trail) steps(records []Record) (lines []string) {
	for i, x := range records {
		if i == maxSteps {
			return append(lines, fmt.Sprintf("… and %d more", len(records)-i))
		}
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, t.step(x)))
	}
	return lines
}

// named is the candidate, and its profile where that may be named.
func (x Record) named(t trail) string {
	text := x.Provider + "/" + x.Model
	if x.Profile != "" && t.call.details() && !t.brief {
		text += " with " + code(string(x.Profile))
	}
	return text
}

func (t trail) head(d decision) string {
	text := fmt.Sprintf("🔎 Last turn, %s, %s: %s", moment(d.At, t.now, t.zone), seconds(d.Duration), d.Outcome)
	if !d.Model.IsZero() {
		text += " by " + d.Model.String()
	}
	if d.Selected != d.Model && !d.Selected.IsZero() {
		text += fmt.Sprintf(" (selected %s)", d.Selected)
	}
	if d.Reason != "" {
		text += " — " + words(d.Reason, d.detail())
	}
	return text
}

// detail tells what kind of failure gave the turn its reason.
func (d decision) detail() llm.Detail {
	for _, x := range slices.Backward(d.Records) {
		if x.Reason == d.Reason {
			return x.Detail
		}
	}
	return ""
}

func (t trail) step(x Record) string {
	text := ""
	if !x.StartedAt.IsZero() {
		text = t.clock(x.StartedAt) + " "
	}
	text += x.named(t)
	switch {
	case x.Skipped:
		text += " — skipped: " + passed(x.Why, x.Reason, x.Detail)
		if !x.Until.IsZero() {
			text += " until " + moment(x.Until, t.now, t.zone)
		}
		return text
	case x.Reason == "":
		text += " — answered"
	default:
		text += " — " + words(x.Reason, x.Detail)
		if x.Status != 0 {
			text += fmt.Sprintf(" (status %d)", x.Status)
		}
	}
	text += ", " + seconds(x.Duration)
	if why := tried(x.Why); why != "" {
		text += "; " + why
	}
	if x.Error != "" && x.Reason != "" && t.call.Owner && !t.call.group() {
		text += "\n   " + code(clip(strings.Join(strings.Fields(x.Error), " "), maxPreview))
	}
	return text
}

func (t trail) clock(at time.Time) string {
	if t.zone == nil {
		return at.UTC().Format(time.TimeOnly)
	}
	return at.In(t.zone).Format(time.TimeOnly)
}
