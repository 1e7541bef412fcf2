package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"understudy/channels/console"
	"understudy/chat"
	"understudy/config"
	"understudy/gateway"
	"understudy/inbound"
	"understudy/internal/sqlite"
)

// remote returns a client of the running bot's control socket. It reads no configuration: a file that
// was broken meanwhile keeps nobody from asking the bot that runs on.
func remote(o Options) (*gateway.ControlClient, error) {
	env, _ := config.ReadEnv(o.env())
	if env.StateDir == "" {
		return nil, errNoState
	}
	return gateway.NewControlClient(filepath.Join(env.StateDir, gateway.ControlSocket)), nil
}

// RemoteHealth is `bot health`: it fails unless a running bot is ready.
func RemoteHealth(ctx context.Context, o Options, std Std) int {
	c, err := remote(o)
	if err == nil {
		err = c.Health(ctx)
	}
	if err != nil {
		return fail(std, err)
	}
	fmt.Fprintln(std.Out, "ready")
	return ExitOK
}

// RemoteReload is `bot reload`.
func RemoteReload(ctx context.Context, o Options, std Std) int {
	c, err := remote(o)
	if err == nil {
		err = c.Reload(ctx)
	}
	if err != nil {
		return fail(std, err)
	}
	fmt.Fprintln(std.Out, "The configuration was read again.")
	return ExitOK
}

// RemoteStatus is `bot status`.
func RemoteStatus(ctx context.Context, o Options, std Std, asJSON bool) int {
	c, err := remote(o)
	if err != nil {
		return fail(std, err)
	}
	s, err := c.Status(ctx)
	if err != nil {
		return fail(std, err)
	}
	if asJSON {
		e := json.NewEncoder(std.Out)
		e.SetIndent("", "  ")
		if err := e.Encode(s); err != nil {
			return fail(std, err)
		}
		return ExitOK
	}
	w := tabwriter.NewWriter(std.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "bot\t%s, %s, up %s\n", s.Version, s.Readiness, time.Since(s.StartedAt).Round(time.Second))
	fmt.Fprintf(w, "model\t%s (%s)\n", s.Model.Selected, s.Model.Source)
	if s.Model.Active != "" {
		fmt.Fprintf(w, "answering\t%s (%s)\n", s.Model.Active, s.Model.Reason)
	}
	for _, f := range s.Model.Fallbacks {
		fmt.Fprintf(w, "fallback\t%s\n", f)
	}
	for _, ch := range s.Channels {
		fmt.Fprintf(w, "%s\t%s\n", strings.TrimSpace(ch.Channel+" "+ch.Account), strings.TrimSpace(ch.State+" "+ch.Detail))
	}
	for _, p := range s.Profiles {
		fmt.Fprintf(w, "%s\t%s (%s) until %s\n", strings.TrimSpace(p.Profile+" "+p.Model), p.State, p.Reason, p.Until.Local().Format("15:04:05"))
	}
	for _, p := range s.Problems {
		fmt.Fprintf(w, "problem\t%s: %s\n", p.Subject, p.Detail)
	}
	if err := w.Flush(); err != nil {
		return fail(std, err)
	}
	return ExitOK
}

// Chat is `bot chat`. It attaches to a running bot, or runs one inside while it lasts.
func Chat(ctx context.Context, o Options, std Std, conversation string) int {
	out, _ := std.Out.(*os.File)
	tty := out != nil && console.IsTerminal(std.In, out)
	account := console.AccountWhole
	if tty {
		account = ""
	}
	client, err := remote(o)
	if err != nil {
		return fail(std, err)
	}
	talk := func(ctx context.Context, link console.Link) error {
		defer func() { _ = link.Close() }()
		if !tty {
			return console.Pipe(ctx, link, std.In, std.Out, std.Err)
		}
		return chatTTY(ctx, link, std.In, out)
	}
	if errors.Is(client.Health(ctx), gateway.ErrNoServer) {
		err = embedded(ctx, o, std, account, conversation, tty, talk)
	} else {
		var link console.Link
		if tty {
			fmt.Fprintln(std.Err, "Attached to the bot that is running. What is said here goes on when you leave.")
		}
		if link, err = console.Dial(ctx, client.HTTP(), client.URL(""), account, conversation); err == nil {
			err = talk(ctx, link)
		}
	}
	switch {
	case errors.Is(err, console.ErrUnanswered):
		return ExitFailed
	case err != nil:
		return fail(std, err)
	}
	return ExitOK
}

// embedded runs a bot without doors to the network for the length of one conversation.
func embedded(ctx context.Context, o Options, std Std, account, conversation string, tty bool, talk func(context.Context, console.Link) error) error {
	o.Listen = "off"
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(logFor(tty), &slog.HandlerOptions{Level: slog.LevelError}))
	}
	a, err := New(ctx, o)
	if err != nil {
		return err
	}
	if tty {
		a.greet(ctx, std.Err)
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer stop() // a bot that cannot run ends the conversation
		ended <- a.Run(ctx)
	}()
	link, err := a.attach(ctx, account, conversation)
	if err == nil {
		err = talk(ctx, link)
	}
	stop()
	return errors.Join(err, <-ended, a.Close())
}

// logFor keeps the log off a terminal that shows a conversation.
func logFor(tty bool) io.Writer {
	if tty {
		return io.Discard
	}
	return os.Stderr
}

// attach opens a line to the console channel once it runs.
func (a *App) attach(ctx context.Context, account, conversation string) (console.Link, error) {
	for _, c := range a.consoles {
		if c.Traits().Account != account {
			continue
		}
		if err := a.opts.Clock.Await(ctx, a.states.wait(inbound.Account{Channel: console.Channel, Name: account})); err != nil {
			return nil, err
		}
		return c.Attach(conversation)
	}
	return nil, errors.New("there is no console account " + account)
}

func chatTTY(ctx context.Context, link console.Link, in, out *os.File) error {
	tty, restore, err := console.OpenTTY(in, out)
	if err != nil {
		return err
	}
	tty.Color = os.Getenv("NO_COLOR") == ""
	return errors.Join(console.Chat(ctx, link, tty), restore())
}

// withPairing opens the pairings beside a bot that may be running.
func withPairing(ctx context.Context, o Options, std Std, f func(*config.Config, *inbound.Pairing) error) int {
	cfg, _, err := config.Load(loadOptions(o))
	if err != nil {
		return fail(std, err)
	}
	err = withState(ctx, o, func(db *sqlite.DB) error {
		p, err := inbound.OpenPairing(ctx, db)
		if err != nil {
			return err
		}
		return f(cfg, p)
	})
	if err != nil {
		return fail(std, err)
	}
	return ExitOK
}

// withState opens the bot's database beside a bot that may be running.
func withState(ctx context.Context, o Options, f func(*sqlite.DB) error) error {
	env, _ := config.ReadEnv(o.env())
	if env.StateDir == "" {
		return errNoState
	}
	db, err := sqlite.Open(ctx, filepath.Join(env.StateDir, "state", "bot.sqlite"), sqlite.Options{BusyTimeout: o.BusyTimeout, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}

// PairingList is `bot pairing list`.
func PairingList(ctx context.Context, o Options, std Std, channel string) int {
	return withPairing(ctx, o, std, func(_ *config.Config, p *inbound.Pairing) error {
		waiting, err := p.Pending(ctx, channel)
		if err != nil {
			return err
		}
		approved, err := p.List(ctx, channel)
		if err != nil {
			return err
		}
		if len(waiting)+len(approved) == 0 {
			fmt.Fprintln(std.Out, "Nobody waits for access, and nobody was given any. People who write to the bot are shown a code.")
			return nil
		}
		w := tabwriter.NewWriter(std.Out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "STATE\tCHANNEL\tACCOUNT\tSENDER\tNAME\tSINCE/UNTIL")
		for _, x := range waiting {
			fmt.Fprintf(w, "waiting\t%s\t%s\t%s\t%s\tuntil %s\n", x.Account.Channel, accountID(x.Account.Name), x.Sender.ID, x.Sender.Name, x.ExpiresAt.Local().Format("15:04"))
		}
		for _, x := range approved {
			fmt.Fprintf(w, "approved\t%s\t%s\t%s\t%s\tsince %s\n", x.Account.Channel, accountID(x.Account.Name), x.Sender.ID, x.Sender.Name, x.At.Local().Format("2006-01-02"))
		}
		return w.Flush()
	})
}

// PairingApprove is `bot pairing approve`. With notify the running bot tells the person.
func PairingApprove(ctx context.Context, o Options, std Std, channel, account, code string, notify bool) int {
	return withPairing(ctx, o, std, func(cfg *config.Config, p *inbound.Pairing) error {
		who, err := p.Approve(ctx, keyOf(channel, account), code, "cli", len(cfg.Commands.OwnerAllowFrom) > 0)
		if err != nil {
			return err
		}
		fmt.Fprintf(std.Out, "%s (%s) may write direct messages now.\n", who.Sender.Name, who.Sender.ID)
		if who.Owner {
			fmt.Fprintf(std.Out, "They are the bot's owner. To write that down: commands: {ownerAllowFrom: [\"%s:%s\"]}\n", channel, who.Sender.ID)
		}
		if notify {
			tell(ctx, o, std, who.To)
		}
		return nil
	})
}

// tell has the running bot say that somebody was approved. The approval stands in any case.
func tell(ctx context.Context, o Options, std Std, to chat.Address) {
	c, err := remote(o)
	if err == nil {
		err = c.Post(ctx, "/v1/notify", chat.Outbound{To: to, Markdown: inbound.TextApproved}, nil)
	}
	if err != nil {
		fmt.Fprintln(std.Err, "bot: they are approved, but were not told:", err)
		return
	}
	fmt.Fprintln(std.Out, "They are told.")
}

// PairingRevoke is `bot pairing revoke`.
func PairingRevoke(ctx context.Context, o Options, std Std, channel, account, sender string) int {
	return withPairing(ctx, o, std, func(_ *config.Config, p *inbound.Pairing) error {
		had, err := p.Revoke(ctx, keyOf(channel, account), sender)
		if err == nil && !had {
			err = fmt.Errorf("%s has no approval on %s", sender, channel)
		}
		if err == nil {
			fmt.Fprintf(std.Out, "%s may not write any more.\n", sender)
		}
		return err
	})
}
