package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"understudy/config"
	"understudy/cron"
	"understudy/gateway"
	"understudy/internal/sqlite"
)

// readCron asks the running bot, or the database where none runs.
func readCron[T any](ctx context.Context, o Options, route string, q cronQuery, direct func(cronReader) (T, error)) (out T, err error) {
	c, err := remote(o)
	if err == nil {
		err = c.Post(ctx, "/v1/cron/"+route, q, &out)
	}
	if !errors.Is(err, gateway.ErrNoServer) {
		return out, err
	}
	cfg, _, err := config.Load(loadOptions(o))
	if err != nil {
		return out, err
	}
	err = withState(ctx, o, func(db *sqlite.DB) error {
		jobs, err := cron.NewStore(ctx, db)
		if err != nil {
			return err
		}
		s, err := newScheduler(cfg, jobs, cron.Deps{Clock: o.Clock})
		if err != nil {
			return err
		}
		out, err = direct(cronReader{jobs, s})
		return err
	})
	return out, err
}

// show prints what a verb found, as JSON or in words.
func show[T any](std Std, found T, err error, asJSON bool, words func(io.Writer, T) error) int {
	switch {
	case err != nil:
	case asJSON:
		err = printJSON(std.Out, found)
	default:
		err = words(std.Out, found)
	}
	if err != nil {
		return fail(std, err)
	}
	return ExitOK
}

// CronList is `bot cron list`.
func CronList(ctx context.Context, o Options, std Std, all, asJSON bool) int {
	q := cronQuery{All: all}
	list, err := readCron(ctx, o, "list", q, func(r cronReader) ([]CronJob, error) { return r.list(ctx, q) })
	return show(std, list, err, asJSON, printJobs)
}

func printJobs(w io.Writer, list []CronJob) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, `No task is scheduled. bot cron add "every weekday at 9" "Summarise what is new" --channel … --to … makes one; --all shows those that are off.`)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tNAME\tSCHEDULE\tNEXT\tLAST\tMODEL")
	for _, j := range list {
		next, last, model := "off", "never", j.Model
		if len(j.Next) > 0 {
			next = moment(j.Next[0], j.Zone)
		}
		if j.Running {
			next = "running"
		}
		if j.LastStatus != "" {
			last = j.LastStatus
			if j.Completion != "" && j.Completion != "succeeded" {
				last += "/" + j.Completion
			}
		}
		if j.StoodIn {
			model += " → " + j.LastModel
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", j.ID, printable(j.Name), j.Schedule, next, last, model)
	}
	return t.Flush()
}

// moment writes a time of a task, in the task's own zone.
func moment(t time.Time, zone string) string {
	if own, err := time.LoadLocation(zone); err == nil && zone != "" {
		t = t.In(own)
	}
	return t.Format("Mon 2006-01-02 15:04 MST")
}

// CronShow is `bot cron show`.
func CronShow(ctx context.Context, o Options, std Std, id string, asJSON bool) int {
	q := cronQuery{ID: id}
	j, err := readCron(ctx, o, "show", q, func(r cronReader) (CronJob, error) { return r.show(ctx, q) })
	return show(std, j, err, asJSON, printJob)
}

func printJob(w io.Writer, j CronJob) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	line := func(key, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", key, printable(fmt.Sprintf(format, args...)))
	}
	state := "on"
	switch {
	case j.Running:
		state = "running"
	case !j.Enabled && j.OffBecause != "":
		state = "off: " + j.OffBecause
		if !j.OffSince.IsZero() {
			state += ", since " + moment(j.OffSince, j.Zone)
		}
	case !j.Enabled:
		state = "off"
	}
	line("task", "%s (%s), %s", j.ID, j.Name, state)
	line("schedule", "%s", j.Schedule)
	for _, n := range j.Next {
		line("next", "%s", moment(n, j.Zone))
	}
	model := "the agent's"
	if j.Model != "" {
		model = j.Model
	}
	if j.Fallbacks != nil {
		model += ", then " + strings.Join(*j.Fallbacks, ", ")
		if len(*j.Fallbacks) == 0 {
			model = strings.TrimSuffix(model, ", then ") + ", and no other"
		}
	}
	line("agent", "%s, session %s, model %s, at most %s", j.Agent, j.Session, model, j.Timeout)
	where := "the run log only"
	if j.Delivery != "" {
		where = j.Delivery
	}
	line("result to", "%s", where)
	if j.Alert != nil {
		line("alerts", "%s", j.Alert.words())
	}
	if !j.LastRun.IsZero() {
		last := fmt.Sprintf("%s: %s %s", moment(j.LastRun, j.Zone), j.LastStatus, j.Completion)
		if j.LastModel != "" {
			last += " by " + j.LastModel
		}
		if j.StoodIn {
			last += ", which stood in"
		}
		if j.LastError != "" {
			last += " — " + j.LastError
		}
		line("last run", "%s", last)
	}
	line("text", "%s", strings.Join(strings.Fields(j.Message), " "))
	return t.Flush()
}

// words say when somebody is told of failures.
func (x CronAlert) words() string {
	if x.Off {
		return "none"
	}
	text := "as configured"
	if x.After > 0 {
		text = fmt.Sprintf("from failure %d in a row on", x.After)
	}
	if x.To != "" {
		text += ", to " + x.To
	}
	return text
}

// CronRuns is `bot cron runs`.
func CronRuns(ctx context.Context, o Options, std Std, id string, limit int, asJSON bool) int {
	q := cronQuery{ID: id, Limit: limit}
	list, err := readCron(ctx, o, "runs", q, func(r cronReader) ([]CronRun, error) { return r.runs(ctx, q) })
	return show(std, list, err, asJSON, printRuns)
}

func printRuns(w io.Writer, list []CronRun) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "There is no run in the log, which reaches back a week.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "RUN\tFOR\tTOOK\tEXECUTED\tCOMPLETE\tMODEL\tNOTE")
	for _, r := range list {
		took, complete := "", r.Completion
		if !r.Finished.IsZero() && !r.Started.IsZero() {
			took = r.Finished.Sub(r.Started).Round(100 * time.Millisecond).String()
		}
		if complete == "" {
			complete = "-"
		}
		model, note := r.Model, r.Error
		if r.StoodIn {
			note = strings.TrimPrefix(note+fmt.Sprintf("; %s did not answer: %s", r.Requested, r.Because), "; ")
		}
		if note == "" {
			note, _, _ = strings.Cut(r.Excerpt, "\n")
		}
		if x := []rune(note); len(x) > 80 {
			note = string(x[:79]) + "…"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Scheduled.Local().Format("2006-01-02 15:04"), took, r.Status, complete, model, printable(note))
	}
	return t.Flush()
}

// CronNextRuns is `bot cron next`: what a schedule means, or what comes next of all tasks.
func CronNextRuns(ctx context.Context, o Options, std Std, text, tz string, limit int, asJSON bool) int {
	q := cronQuery{Schedule: text, Zone: tz, Limit: limit}
	n, err := readCron(ctx, o, "next", q, func(r cronReader) (CronNext, error) { return r.next(ctx, q) })
	return show(std, n, err, asJSON, func(w io.Writer, n CronNext) error {
		if text == "" {
			return printJobs(w, n.Jobs)
		}
		fmt.Fprintln(w, n.Description)
		for _, at := range n.Next {
			fmt.Fprintln(w, " ", moment(at, n.Zone))
		}
		return nil
	})
}

// CronAdd is `bot cron add`.
func CronAdd(ctx context.Context, o Options, std Std, x CronChange) int {
	return changeCron(ctx, o, std, "add", x, "Scheduled")
}

// CronEdit is `bot cron edit`.
func CronEdit(ctx context.Context, o Options, std Std, x CronChange) int {
	return changeCron(ctx, o, std, "edit", x, "Changed")
}

// CronSwitch is `bot cron enable` and `bot cron disable`.
func CronSwitch(ctx context.Context, o Options, std Std, id string, on bool) int {
	if on {
		return changeCron(ctx, o, std, "enable", cronQuery{ID: id}, "On")
	}
	return changeCron(ctx, o, std, "disable", cronQuery{ID: id}, "Off")
}

// changeCron has the running bot change a task and prints what that comes to.
func changeCron(ctx context.Context, o Options, std Std, route string, in any, did string) int {
	var j CronJob
	c, err := remote(o)
	if err == nil {
		err = c.Post(ctx, "/v1/cron/"+route, in, &j)
	}
	return show(std, j, err, false, func(w io.Writer, j CronJob) error {
		fmt.Fprintf(w, "%s: %s (%s), %s\n", did, printable(j.Name), j.ID, j.Schedule)
		for _, at := range j.Next {
			fmt.Fprintln(w, "  next", moment(at, j.Zone))
		}
		return nil
	})
}

// CronRemove is `bot cron remove`.
func CronRemove(ctx context.Context, o Options, std Std, id string) int {
	c, err := remote(o)
	if err == nil {
		err = c.Post(ctx, "/v1/cron/remove", cronQuery{ID: id}, nil)
	}
	return show(std, id, err, false, func(w io.Writer, id string) error {
		_, err := fmt.Fprintf(w, "Removed: %s\n", id)
		return err
	})
}

// CronRunNow is `bot cron run`. With wait it ends with the run, and exit code 1 tells that it did not go
// well.
func CronRunNow(ctx context.Context, o Options, std Std, id string, due, wait bool) int {
	var r CronRun
	c, err := remote(o)
	if err == nil {
		err = c.Post(ctx, "/v1/cron/run", cronOrderOfRun{id, due, wait}, &r)
	}
	code := show(std, r, err, false, func(w io.Writer, r CronRun) error {
		if !wait {
			_, err := fmt.Fprintf(w, "Run %s has begun; bot cron runs %s shows what comes of it.\n", r.ID, r.Job)
			return err
		}
		return printRuns(w, []CronRun{r})
	})
	if code == ExitOK && wait && (r.Status != string(cron.OK) || r.Completion != string(cron.Succeeded)) {
		return ExitFailed
	}
	return code
}
