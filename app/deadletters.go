package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"understudy/gateway"
	"understudy/inbound"
	"understudy/internal/sqlite"
)

// DeadLetter is a message that was given up.
type DeadLetter struct {
	ID      int64     `json:"id"`
	Channel string    `json:"channel"`
	Account string    `json:"account"`
	Sender  string    `json:"sender"`
	At      time.Time `json:"at"`
	Why     string    `json:"why"`
	Text    string    `json:"text"` // how it begins
}

// DeadLetters is `bot channels dead-letters list`. It needs no running bot: a message that ends the
// bot again and again is just what it is for.
func DeadLetters(ctx context.Context, o Options, std Std, asJSON bool) int {
	list := []DeadLetter{}
	err := withState(ctx, o, func(db *sqlite.DB) error {
		d, err := inbound.OpenDeadLetters(ctx, db)
		if err != nil {
			return err
		}
		found, err := d.List(ctx)
		for _, l := range found {
			list = append(list, shownLetter(l))
		}
		return err
	})
	switch {
	case err != nil:
		return fail(std, err)
	case asJSON:
		err = printJSON(std.Out, list)
	case len(list) == 0:
		_, err = fmt.Fprintln(std.Out, "No message was given up.")
	default:
		err = printLetters(std.Out, list)
	}
	if err != nil {
		return fail(std, err)
	}
	return ExitOK
}

func printLetters(w io.Writer, list []DeadLetter) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tCHANNEL\tACCOUNT\tSENDER\tAT\tWHY\tBEGINS WITH")
	for _, d := range list {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, d.Channel, d.Account, d.Sender, d.At.Local().Format("2006-01-02 15:04"), d.Why, d.Text)
	}
	return t.Flush()
}

// shownLetter is a dead letter as an operator sees it: on one line, whatever its sender wrote.
func shownLetter(d inbound.DeadLetter) DeadLetter {
	line, _, _ := strings.Cut(d.Text, "\n")
	if r := []rune(line); len(r) > titleLength {
		line = string(r[:titleLength]) + "…"
	}
	return DeadLetter{
		ID: d.ID, Channel: d.Account.Channel, Account: accountID(d.Account.Name), Sender: d.Sender.ID, At: d.ReceivedAt, Why: d.Reason, Text: printable(line),
	}
}

// printable leaves out what would move a terminal's cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// resubmission names a dead letter.
type resubmission struct {
	ID int64 `json:"id"`
}

// Resubmit is `bot channels dead-letters resubmit`: a running bot answers the message now, else the
// next start does.
func Resubmit(ctx context.Context, o Options, std Std, id int64) int {
	c, err := remote(o)
	if err == nil {
		err = c.Post(ctx, "/v1/dead-letters/resubmit", resubmission{id}, nil)
	}
	when := "is being answered"
	if errors.Is(err, gateway.ErrNoServer) {
		when = "is answered by the next start"
		err = withState(ctx, o, func(db *sqlite.DB) error {
			d, err := inbound.OpenDeadLetters(ctx, db)
			if err != nil {
				return err
			}
			_, err = d.Resubmit(ctx, id)
			return err
		})
	}
	if err != nil {
		return fail(std, err)
	}
	fmt.Fprintf(std.Out, "Message %d %s.\n", id, when)
	return ExitOK
}

// resubmit gives a message another try.
func (a *App) resubmit(ctx context.Context, in resubmission) (any, error) {
	id, err := a.inbound.Resubmit(ctx, in.ID)
	return resubmission{id}, err
}
