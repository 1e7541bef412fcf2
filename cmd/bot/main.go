// Command bot is Understudy: a chat bot that keeps answering when a model, a key or a provider
// fails. This program parses flags; what the verbs do lives in package app.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"understudy/app"
)

// version is set by the release build (-ldflags "-X main.version=…").
var version string

func main() {
	syscall.Umask(0o077) // whatever the bot writes is for its owner alone
	os.Exit(run())
}

func run() int {
	var cli commandLine
	parser, err := kong.New(&cli,
		kong.Name("bot"),
		kong.Description("Understudy: a self-hosted chat bot that keeps answering when a model, a key or a provider fails."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bot:", err)
		return app.ExitFailed
	}
	call, err := parser.Parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bot:", proposal(parser, err))
		fmt.Fprintln(os.Stderr, "See: bot --help")
		return app.ExitUsage
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go interrupt(stop)
	return cli.dispatch(ctx, call.Command(),
		app.Options{Version: versionText(), Config: cli.Config, InsecurePerms: cli.InsecurePerms},
		app.Std{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

// proposal is err, or what else there is to say of a misspelled verb: it is taken for an argument of the
// default one, which knows no other.
func proposal(parser *kong.Kong, err error) error {
	parser.Model.DefaultCmd = nil
	if _, again := parser.Parse(os.Args[1:]); again != nil && strings.Contains(again.Error(), "did you mean") {
		return again
	}
	return err
}

// interrupt stops the bot in order on the first signal and at once on the second.
func interrupt(stop context.CancelFunc) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	<-c
	stop()
	<-c
	fmt.Fprintln(os.Stderr, "bot: stopped at once; what was not answered is answered by the next start")
	os.Exit(app.ExitFailed)
}

// versionText is the release's version, or what the build knows of itself.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
