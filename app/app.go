package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"understudy/channels/console"
	"understudy/channels/telegram"
	"understudy/channels/web"
	"understudy/commands"
	"understudy/config"
	"understudy/delivery"
	"understudy/failover"
	"understudy/gateway"
	"understudy/inbound"
	"understudy/internal/redact"
	"understudy/internal/sqlite"
	"understudy/mcp"
	"understudy/provider/sim"
	"understudy/reply"
	"understudy/session"
)

// ErrRunning tells that another process serves the state directory.
var ErrRunning = errors.New("another bot serves this state directory")

var errNoState = fmt.Errorf("there is no home directory; set %s to a directory for the bot's data", config.StateDirVar)

// App is one bot.
type App struct {
	opts    Options
	log     *slog.Logger
	hide    *redact.Redactor
	state   string // directory
	started time.Time
	lock    *os.File
	current atomic.Pointer[snapshot]
	watcher *config.Watcher
	sim     *sim.Sim

	db       *sqlite.DB
	sessions *session.Store
	auth     stores
	lanes    *session.Lanes
	failover *failover.Runner
	reply    *reply.Runner
	commands *commands.Registry
	inbound  *inbound.Pipeline
	delivery *delivery.Service
	metrics  *gateway.Metrics
	gateway  *gateway.Server  // nil when off
	control  *gateway.Control // nil when off
	web      *web.Adapter
	consoles []*console.Adapter
	roster   roster
	owners   owners
	// oneCredential is held by whoever compares a credential with what the owner was told of it.
	oneCredential chan struct{}
	draining      chan struct{} // closed when a stop begins

	phase    atomic.Int32 // phaseStarting, …
	states   connections
	booted   *config.Config // what the process began with
	touched  touched
	polls    *telegram.Tokens
	work     sync.WaitGroup // commands under way
	running  atomic.Int64   // turns that have begun
	turns    turns
	joined   *joined
	reloaded atomic.Pointer[string]
	// reloading is held while a configuration takes effect.
	reloading sync.Mutex

	commanding  sync.Map // event key → *job whose command runs
	approvals   approvals
	offers      *offers
	activations activations
	mcp         *mcp.Servers
	speech      *speech
	restarts    chan struct{} // closed when a restart was asked for
	unasked
	leaving sync.Once
}

// The phases of an App's life.
const (
	phaseStarting int32 = iota
	phaseReady
	phaseDraining
)

// New builds a bot: it reads the configuration, takes the state directory and opens everything, but
// answers nobody before Run. On an error nothing stays open.
func New(ctx context.Context, opts Options) (_ *App, err error) {
	cfg, warnings, err := config.Load(loadOptions(opts))
	if err != nil {
		return nil, err
	}
	a := &App{opts: opts, state: cfg.Env.StateDir, started: opts.Clock.Now(), sim: opts.Sim, polls: telegram.NewTokens(), restarts: make(chan struct{}), oneCredential: make(chan struct{}, 1), draining: make(chan struct{})}
	if a.state == "" {
		return nil, errNoState
	}
	a.log = a.logger(cfg)
	for _, w := range warnings {
		a.log.WarnContext(ctx, "config_warning", "problem", w.String())
	}
	if a.sim == nil {
		a.sim = sim.New(sim.Config{Clock: opts.Clock})
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if a.lock, err = takeState(a.state); err != nil {
		return nil, err
	}
	a.auth = stores{open: a.openAuth, main: cfg.DefaultAgent()}
	// Opened now so that a foreign or damaged file is told at the start, not at the first message.
	if _, err := a.auth.get(ctx, cfg.DefaultAgent()); err != nil {
		var foreign *sqlite.ForeignError
		if errors.As(err, &foreign) {
			return nil, err
		}
		a.log.ErrorContext(ctx, "auth_store_unavailable", "agent", cfg.DefaultAgent(), "error", err.Error())
	}
	snap, err := a.newSnapshot(ctx, cfg)
	if err != nil {
		return nil, err
	}
	a.current.Store(snap)
	a.booted = cfg
	a.watcher = config.NewWatcher(loadOptions(opts), cfg)
	a.db, err = sqlite.Open(ctx, filepath.Join(a.state, "state", "bot.sqlite"), sqlite.Options{BusyTimeout: opts.BusyTimeout, Log: a.log})
	if err != nil {
		return nil, err
	}
	if a.sessions, err = session.New(ctx, a.db, session.Deps{Clock: opts.Clock}); err != nil {
		return nil, err
	}
	return a, a.wire(ctx)
}

// wire connects the rooms.
func (a *App) wire(ctx context.Context) error {
	cfg := a.cfg()
	a.metrics = gateway.NewMetrics(gateway.MetricsConfig{
		Channels: channelNames(), Models: refStrings(a.current.Load().known()), Voices: cfg.Voices(), Refresh: a.measure,
	})
	a.lanes = session.NewLanes(session.LaneConfig{MaxInteractive: cfg.Agents.Defaults.MaxConcurrent, MaxBackground: mostUnasked}, a.opts.Clock, a.log)
	if err := a.openPurse(ctx); err != nil {
		return err
	}
	a.failover = failover.New(failover.Deps{
		Store:    a.auth.failover,
		Models:   func() failover.Models { return a.current.Load() },
		Settings: func() *failover.Settings { return a.current.Load().settings },
		Clock:    a.opts.Clock, Log: a.log, Observer: observer{a.metrics, a}, Purse: till{a},
	})
	var err error
	if a.mcp, err = mcp.New(cfg.MCP, mcp.Deps{Log: a.log, Version: a.opts.Version, Transport: a.opts.Tools}); err != nil {
		return err
	}
	if a.speech, err = a.openSpeech(ctx, cfg); err != nil {
		return err
	}
	a.commands = commands.New(a.commandDeps())
	a.delivery, err = delivery.New(ctx, delivery.Deps{
		DB: a.db, Clock: a.opts.Clock, Log: a.log, Metrics: counters{a.metrics, &a.roster}, Unknown: a.uncertain, Moved: a.moved,
		Broken: a.broken, RateLimited: a.metrics.RateLimited, Speak: a.speak,
		FirstVisible: func(_ string, after time.Duration) { a.metrics.FirstText(after) },
	})
	if err != nil {
		return err
	}
	a.reply = reply.New(a.replyDeps())
	if err := a.openUnasked(ctx); err != nil {
		return err
	}
	a.inbound, err = inbound.New(ctx, a.access(cfg), inbound.Deps{
		DB: a.db, Log: a.log, Handler: a, Send: a.delivery.Send, Answer: a.answerState,
		IsCommand: a.isCommand,
		Status:    a.connection,
	})
	if err != nil {
		return err
	}
	if a.joined, err = a.openJoined(ctx); err != nil {
		return err
	}
	if a.offers, err = a.openOffers(ctx); err != nil {
		return err
	}
	if err := a.openChannels(ctx, cfg); err != nil {
		return err
	}
	return a.openDoors(cfg)
}

// openDoors binds the control socket and the HTTP listener.
func (a *App) openDoors(cfg *config.Config) error {
	rpc := a.rpc()
	if !a.opts.NoControl {
		if err := a.openControl(rpc); err != nil {
			return err
		}
	}
	if a.opts.Listen == listenOff {
		return nil
	}
	door := cfg.Gateway
	if a.opts.Listen != "" {
		door.Listen = a.opts.Listen
	}
	var err error
	if a.gateway, err = gateway.New(door, gateway.Deps{Status: a, Metrics: a.metrics, CookieKey: a.cookieKey(), Log: a.log}); err != nil {
		return err
	}
	a.gateway.Handle("/api/", gateway.Owner, a.web.Handler())
	a.gateway.Handle("POST /rpc", gateway.Owner, rpc)
	a.mountWebhooks()
	return nil
}

func (a *App) openControl(rpc *gateway.RPC) error {
	var err error
	a.control, err = gateway.NewControl(filepath.Join(a.state, gateway.ControlSocket), gateway.ControlDeps{
		Status: a, Reload: a.reload, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.channelRoutes(a.control)
	a.pageRoutes(a.control)
	a.unaskedRoutes(a.control)
	a.control.Handle("POST "+gateway.RPCRoute, rpc)
	a.control.Handle(console.Route, console.Handler(a.consoles...))
	a.control.Handle(console.Route+"/", console.Handler(a.consoles...))
	return nil
}

// URL returns the address of the page, "" when there is none.
func (a *App) URL() string {
	if a.gateway == nil {
		return ""
	}
	return a.gateway.URL()
}

func (a *App) cfg() *config.Config { return a.current.Load().cfg }

// Close frees everything. Run has returned, or was never called.
func (a *App) Close() error {
	var errs []error
	if a.gateway != nil && a.phase.Load() == phaseStarting {
		errs = append(errs, a.gateway.Close())
	}
	if a.control != nil && a.phase.Load() == phaseStarting {
		errs = append(errs, a.control.Close())
	}
	a.roster.close()
	errs = append(errs, a.auth.close())
	if a.db != nil {
		errs = append(errs, a.db.Close())
	}
	if s := a.current.Load(); s != nil {
		s.registry.Close()
	}
	if a.lock != nil {
		errs = append(errs, a.lock.Close())
	}
	return errors.Join(errs...)
}

func loadOptions(o Options) config.Options {
	return config.Options{Path: o.Config, Env: o.Env, InsecurePerms: o.InsecurePerms}
}
