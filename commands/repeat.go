package commands

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// remind sets, lists and takes back reminders. What a reminder says is read by Reminders.
func (r *Registry) remind(ctx context.Context, c Call, args string) (Reply, error) {
	word, rest := cutWord(args)
	switch w := strings.ToLower(word); {
	case w == "", w == "list" && rest == "":
		jobs, err := r.deps.Reminders.Reminders(ctx, c)
		if err != nil {
			return Reply{}, err
		}
		return r.jobLines(c, jobs, "No reminder is set here. Set one like this: `/remind 20m stretch`"), nil
	case w == "cancel" && len(strings.Fields(rest)) <= 1:
		jobs, err := r.deps.Reminders.Reminders(ctx, c)
		if err != nil {
			return Reply{}, err
		}
		j, err := found(jobs, rest, "/remind list")
		if err != nil {
			return Reply{}, err
		}
		return Reply{Text: fmt.Sprintf("⏰ Cancelled: %s.", clip(j.Name, maxQuote))}, r.deps.Reminders.Forget(ctx, c, j.ID)
	}
	j, err := r.deps.Reminders.Remind(ctx, c, args)
	if err != nil {
		return Reply{}, err
	}
	return Reply{Text: r.Reminded(c.Agent, j)}, nil
}

// Reminded confirms a reminder, with its next times.
func (r *Registry) Reminded(agent string, j Job) string {
	return fmt.Sprintf("⏰ I will remind you: %s (%s)\nNext: %s", clip(j.Name, maxQuote), code(j.ID), r.Upcoming(agent, j))
}

const (
	loopEvery   = 10 * time.Minute // where no interval is given
	shortest    = time.Minute
	longestLoop = 366 * 24 * time.Hour
)

// loop repeats a text in this conversation.
func (r *Registry) loop(ctx context.Context, c Call, args string) (Reply, error) {
	word, rest := cutWord(args)
	switch w := strings.ToLower(word); {
	case w == "", w == "status" && rest == "":
		jobs, err := r.deps.Loops.Loops(ctx, c)
		if err != nil {
			return Reply{}, err
		}
		return r.jobLines(c, jobs, "Nothing repeats here."), nil
	case w == "stop":
		return r.stopLoop(ctx, c, rest)
	}
	every, prompt := loopEvery, args
	if d, ok := interval(word); ok {
		every, prompt = d, rest
	}
	switch {
	case prompt == "":
		return Reply{}, r.misused("loop")
	case every < shortest || every > longestLoop:
		return Reply{}, &Refusal{"The interval is at least a minute, and at most a year."}
	}
	j, err := r.deps.Loops.Start(ctx, c, every, prompt)
	if err != nil {
		return Reply{}, err
	}
	reply := r.made(c, "Repeats:", j)
	reply.Text += fmt.Sprintf("\n/loop stop %s ends it.", j.ID)
	return reply, nil
}

// stopLoop ends the one loop there is, or the one that is named.
func (r *Registry) stopLoop(ctx context.Context, c Call, what string) (Reply, error) {
	jobs, err := r.deps.Loops.Loops(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	switch {
	case len(jobs) == 0:
		return Reply{Text: "Nothing repeats here."}, nil
	case what == "" && len(jobs) == 1:
		what = jobs[0].ID
	}
	j, err := found(jobs, what, "/loop status")
	if err != nil {
		return Reply{}, err
	}
	return Reply{Text: fmt.Sprintf("⏰ Stopped: %s.", clip(j.Name, maxQuote))}, r.deps.Loops.Stop(ctx, c, j.ID)
}

var intervalShape = regexp.MustCompile(`^(\d{1,4}[smhd])+$`)

// interval reads a word such as 15m, 2h30m or 1d.
func interval(word string) (time.Duration, bool) {
	word = strings.ToLower(word)
	if !intervalShape.MatchString(word) || len(word) > 20 {
		return 0, false
	}
	var sum time.Duration
	n := time.Duration(0)
	for _, c := range word {
		switch c {
		case 's':
			n *= time.Second
		case 'm':
			n *= time.Minute
		case 'h':
			n *= time.Hour
		case 'd':
			n *= 24 * time.Hour
		default:
			n = n*10 + time.Duration(c-'0')
			continue
		}
		sum, n = sum+n, 0
	}
	return sum, true
}

// heartbeat shows, begins and switches heartbeats (spec/chat.md §6).
func (r *Registry) heartbeat(ctx context.Context, c Call, args string) (Reply, error) {
	switch action := strings.ToLower(args); action {
	case "", "status":
	case "now":
		return Reply{Text: "💓 A heartbeat begins; what it finds goes where heartbeats go."}, r.deps.Heartbeat.Now(ctx, c.Agent)
	case "on", "off":
		if err := r.deps.Heartbeat.Switch(ctx, c.Agent, action == "on"); err != nil {
			return Reply{}, err
		}
		st, err := r.deps.Heartbeat.State(ctx, c.Agent)
		return Reply{Text: r.heartbeatText(c, st) + "\nThis lasts until the bot is restarted."}, err
	default:
		return Reply{}, unknown("action", args, []string{"status", "now", "on", "off"})
	}
	st, err := r.deps.Heartbeat.State(ctx, c.Agent)
	if err != nil {
		return Reply{}, err
	}
	text := r.heartbeatText(c, st)
	if st.On && !st.Next.IsZero() {
		text += "\nNext: " + moment(st.Next, r.deps.Clock.Now(), r.deps.Zone(c.Agent))
	}
	return Reply{Text: text}, nil
}

// heartbeatText is one line of /status and /heartbeat.
func (r *Registry) heartbeatText(_ Call, st HeartbeatState) string {
	text := "💓 Heartbeat: off"
	switch {
	case st.Every <= 0:
		return text + " (no interval is configured)"
	case st.On:
		text = "💓 Heartbeat: every " + span(st.Every)
	}
	if st.Last.IsZero() {
		return text
	}
	outcome := st.Outcome
	if st.Reason != "" {
		outcome += ": " + clip(st.Reason, maxQuote)
	}
	return fmt.Sprintf("%s, last %s %s ago", text, outcome, span(r.deps.Clock.Since(st.Last)))
}
