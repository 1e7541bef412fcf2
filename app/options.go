package app

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"understudy/cron/webhook"
	"understudy/internal/clock"
	"understudy/provider/sim"
)

// Options say how a bot is started.
type Options struct {
	Version string
	// Config is the file named with --config; "" = search (spec/chat.md §12 D12).
	Config string
	// Listen replaces gateway.listen; "" = as configured. "off" opens no HTTP listener.
	Listen string
	// Env looks up environment variables; nil = the process environment.
	Env func(string) (string, bool)
	// Log receives the log; nil = as configured, on standard output.
	Log *slog.Logger
	// InsecurePerms accepts a configuration with secrets that other users can read.
	InsecurePerms bool

	// What tests replace. The zero values are the real thing.
	Clock     clock.Clock
	Transport func(provider string) http.RoundTripper // of model APIs
	Slack     func() http.RoundTripper                // of the Slack API
	Discord   func() http.RoundTripper                // of the Discord API
	Telegram  func() http.RoundTripper                // of the Telegram API
	// Dial opens the sockets of Slack and Discord.
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	SignIn http.RoundTripper // of sign-in servers
	Tools  http.RoundTripper // of tool servers behind URLs
	Speech http.RoundTripper // of services that speak and listen
	Sim    *sim.Sim
	// Webhooks is the network that results are posted to.
	Webhooks webhook.Deps
	// NoControl opens no control socket: whoever waits at a socket stops the clock of a synctest bubble.
	NoControl bool
	// BusyTimeout is sqlite.Options.BusyTimeout: negative in synctest bubbles.
	BusyTimeout time.Duration
}

func (o Options) env() func(string) (string, bool) {
	if o.Env != nil {
		return o.Env
	}
	return os.LookupEnv
}

func (o Options) getenv(name string) string {
	v, _ := o.env()(name)
	return v
}
