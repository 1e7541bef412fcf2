package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// ChannelsStatus is `bot channels status`: the accounts of the running bot; with probe their platforms
// are asked too, and the exit code is 1 when one refuses or something is to be put right.
func ChannelsStatus(ctx context.Context, o Options, std Std, probe, asJSON bool) int {
	c, err := remote(o)
	if err != nil {
		return fail(std, err)
	}
	var list []AccountReport
	if probe {
		err = c.Post(ctx, "/v1/channels/probe", nil, &list)
	} else {
		err = c.Get(ctx, "/v1/channels", &list)
	}
	switch {
	case err != nil:
		return fail(std, err)
	case asJSON:
		err = printJSON(std.Out, list)
	default:
		err = printReports(std.Out, list, o.Clock.Now())
	}
	if err != nil {
		return fail(std, err)
	}
	for _, r := range list {
		if r.needsHand() {
			return ExitFailed
		}
	}
	return ExitOK
}

// needsHand reports whether a probe found something.
func (r AccountReport) needsHand() bool {
	for _, f := range r.Findings {
		if f.Fix != "" {
			return true
		}
	}
	return r.ProbeError != ""
}

// printReports prints a table, and below it what was found.
func printReports(w io.Writer, list []AccountReport, now time.Time) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "No channel of a platform is configured; see docs/slack.md, docs/discord.md, docs/telegram.md.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "CHANNEL\tACCOUNT\tSTATE\tFOR\tLAST EVENT\tEVENTS\tSENT\tFAILED\tRECONNECTS\tLAST ERROR")
	for _, r := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n",
			r.Channel, r.Account, r.State, span(now, r.Since), ago(now, r.LastEvent), r.Events, r.Sent, r.Failed, r.Reconnects, printable(cmp.Or(r.Detail, r.LastError)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range list {
		if l := r.LastLook; l != nil && l.Left > 0 {
			fmt.Fprintf(w, "%s %s: %d conversations were not looked into after a gap (%s): %s\n", r.Channel, r.Account, l.Left, ago(now, l.At), printable(l.Why))
		}
		for _, f := range r.Findings {
			fmt.Fprintf(w, "%s %s: %s\n", r.Channel, r.Account, printable(f.What))
			if f.Fix != "" {
				fmt.Fprintf(w, "       → %s\n", f.Fix)
			}
		}
		if r.ProbeError != "" {
			fmt.Fprintf(w, "%s %s: %s\n", r.Channel, r.Account, printable(r.ProbeError))
		}
	}
	return nil
}

func span(now, since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return max(0, now.Sub(since)).Round(time.Second).String()
}

func ago(now, at time.Time) string {
	if at.IsZero() {
		return "none yet"
	}
	return span(now, at) + " ago"
}
