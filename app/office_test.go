package app_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/app"
	"understudy/chat"
	"understudy/internal/emulate/discord"
	"understudy/internal/emulate/slack"
	"understudy/internal/emulate/telegram"
)

// Ids in the workspaces and servers of an office.
const (
	slackAlice, slackBob   = "U0ALICE01", "U0BOB0001"
	slackDM, slackRoom     = "D0ALICE01", "C0OPS0001"
	discordAlice           = "300000000000000001"
	discordDM, discordRoom = "400000000000000001", "400000000000000002"
	discordGuild           = "500000000000000001"
)

// offlineModels is the beginning of every configuration of an office: its answers tell which model
// answered what.
const offlineModels = "agents: {defaults: {model: {primary: sim/lead, fallbacks: [sim/understudy]}}}\nmodels: {providers: {sim: {}}}\n"

// office is a bot with emulated platforms around it, in memory: it must live inside a synctest bubble.
// Hosts lead to servers, so that there may be several of one platform.
type office struct {
	t     *testing.T
	hosts map[string]func(ctx context.Context, network, address string) (net.Conn, error)
	dir   string
	file  string
	logs  *lockedBuffer
	tg    *telegram.Server
	// models stands for every model API, tools for every tool server behind a URL; nil = there is none.
	models, tools http.RoundTripper

	sockets, most atomic.Int64  // how many are open now, and how many were at most
	goodbye       time.Duration // how long it takes to close one

	bot  *app.App
	stop context.CancelFunc
	done chan error
}

// lockedBuffer is a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newOffice prepares an office; nothing runs before open.
func newOffice(t *testing.T, config string) *office {
	t.Helper()
	base, err := os.MkdirTemp("", "office")
	if err != nil {
		t.Fatal(err)
	}
	o := &office{
		t: t, hosts: map[string]func(context.Context, string, string) (net.Conn, error){}, logs: &lockedBuffer{},
		dir: filepath.Join(base, "state"), file: filepath.Join(base, "bot.yaml"),
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	t.Cleanup(func() {
		if o.bot != nil {
			o.close()
		}
	})
	o.configure(config)
	return o
}

// slackServer adds a workspace that is reached at a host.
func (o *office) slackServer(host string, c slack.Config) *slack.Server {
	s := slack.New(c)
	o.t.Cleanup(s.Close)
	o.hosts[host] = s.Dial
	s.SetUser(slack.User{ID: slackAlice, Name: "alice"})
	s.SetUser(slack.User{ID: slackBob, Name: "bob"})
	s.AddChannel(slack.Channel{ID: slackDM, Kind: "im", With: slackAlice})
	s.AddChannel(slack.Channel{ID: slackRoom, Kind: "channel", Name: "ops"})
	return s
}

// discordServer adds a Discord that is reached at a host.
func (o *office) discordServer(host string, c discord.Config) *discord.Server {
	s := discord.New(c)
	o.t.Cleanup(s.Close)
	o.hosts[host] = s.Dial
	s.SetUser(discord.User{ID: discordAlice, Username: "alice"})
	s.AddGuild(discord.Guild{ID: discordGuild, Name: "Office", Members: map[string][]string{discordAlice: nil}})
	s.AddChannel(discord.Channel{ID: discordRoom, Guild: discordGuild, Name: "ops", Type: discord.TextChannel})
	s.AddChannel(discord.Channel{ID: discordDM, Type: discord.DirectChannel, Recipients: []string{discordAlice}})
	return s
}

// telegramServer adds Telegram and returns the section of the configuration that connects to it.
func (o *office) telegramServer(more string) string {
	const token = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
	o.tg = telegram.New(telegram.Config{Token: token})
	o.t.Cleanup(o.tg.Close)
	return `channels: {telegram: {apiRoot: "http://telegram.test", botToken: "` + token + `", streaming: {mode: "off"}, ` + more + "}}\n"
}

// person adds somebody on Telegram, with a private chat of the same number.
func (o *office) person(id int64, name string) {
	o.tg.SetUser(telegram.User{ID: id, FirstName: name})
	o.tg.AddChat(telegram.Chat{ID: id, Type: "private"})
}

// dial leads to the server of a host.
func (o *office) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if f := o.hosts[host]; f != nil {
		return f(ctx, network, address)
	}
	return nil, fmt.Errorf("nobody is at %s", address)
}

// socket is dial for the sockets of gateways, which are counted while they are open.
func (o *office) socket(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := o.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n := o.sockets.Add(1)
	for most := o.most.Load(); n > most && !o.most.CompareAndSwap(most, n); most = o.most.Load() {
	}
	return &counted{Conn: conn, open: &o.sockets, takes: o.goodbye}, nil
}

// counted is a connection that is counted until it is closed, which takes a while.
type counted struct {
	net.Conn
	open  *atomic.Int64
	takes time.Duration
	once  sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	var err error
	c.once.Do(func() {
		pass(c.takes)
		err = c.Conn.Close()
		c.open.Add(-1)
	})
	return err
}

func (o *office) transport() http.RoundTripper { return &http.Transport{DialContext: o.dial} }

// configure writes bot.yaml; a running bot notices.
func (o *office) configure(text string) {
	o.t.Helper()
	if err := os.WriteFile(o.file, []byte(offlineModels+text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// replaceModel lets another model than the offline ones answer.
func (o *office) replaceModel(ref, provider string) {
	o.t.Helper()
	text, err := os.ReadFile(o.file)
	if err != nil {
		o.t.Fatal(err)
	}
	own := fmt.Sprintf("agents: {defaults: {heartbeat: {every: 0}, model: {primary: %s}}}\nmodels: {providers: {%s}}\n", ref, provider)
	if err := os.WriteFile(o.file, []byte(own+strings.TrimPrefix(string(text), offlineModels)), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) options() app.Options {
	opts := app.Options{
		Version: "test", Config: o.file, Listen: "off", NoControl: true, BusyTimeout: -1,
		Env: func(name string) (string, bool) {
			v, ok := map[string]string{"OPENCLAW_STATE_DIR": o.dir, "OLLAMA_HOST": "127.0.0.1:1"}[name]
			return v, ok
		},
		Log:   slog.New(slog.NewTextHandler(o.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Slack: o.transport, Discord: o.transport, Dial: o.socket,
	}
	if o.tg != nil {
		opts.Telegram = o.tg.Transport
	}
	if o.models != nil {
		opts.Transport = func(string) http.RoundTripper { return o.models }
	}
	opts.Tools = o.tools
	return opts
}

// open starts the bot and waits until it has connected.
func (o *office) open() {
	o.t.Helper()
	bot, err := app.New(o.t.Context(), o.options())
	if err != nil {
		o.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	o.bot, o.stop, o.done = bot, stop, make(chan error, 1)
	go func() { o.done <- bot.Run(ctx) }()
	pass(5 * time.Second)
	synctest.Wait()
}

// close stops the bot in an orderly way.
func (o *office) close() {
	o.t.Helper()
	o.stop()
	if err := <-o.done; err != nil {
		o.t.Errorf("the bot stopped with: %v", err)
	}
	if err := o.bot.Close(); err != nil {
		o.t.Error(err)
	}
	o.bot = nil
}

// settle lets the bot finish what it does.
func (o *office) settle() {
	pass(time.Minute)
	synctest.Wait()
}

// approve lets in whoever holds the code that stands in a text.
func (o *office) approve(channel, account, text string) {
	o.t.Helper()
	_, rest, ok := strings.Cut(text, "Pairing code: ")
	if !ok {
		o.t.Fatalf("there is no code in %q", text)
	}
	code, _, _ := strings.Cut(rest, "\n")
	var out bytes.Buffer
	if app.PairingApprove(o.t.Context(), o.options(), app.Std{Out: &out, Err: &out}, channel, account, code, false) != app.ExitOK {
		o.t.Fatalf("approving: %s", out.String())
	}
}

// state returns the state of an account in `/status` and health.
func (o *office) state(channel, account string) string {
	st, err := o.bot.Status(o.t.Context(), chat.Address{})
	if err != nil {
		o.t.Fatal(err)
	}
	for _, c := range st.Channels {
		if c.Channel == channel && c.Account == account {
			return c.State
		}
	}
	return ""
}
