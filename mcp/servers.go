package mcp

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Deps is what Servers work with. The zero value is fit for use.
type Deps struct {
	Log       *slog.Logger      // nil = none
	Version   string            // of this program, as servers are told
	Transport http.RoundTripper // of servers behind URLs; nil = the network
}

// Servers are all tool servers. It is safe for concurrent use.
type Servers struct {
	deps Deps

	mu      sync.Mutex
	cfg     Config
	running map[string]*server
	ctx     context.Context // of Run; nil = not running
}

// New returns servers of a valid Config. Nothing is started before Run.
func New(cfg Config, deps Deps) (*Servers, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	return &Servers{deps: deps, cfg: cfg.WithDefaults(), running: map[string]*server{}}, nil
}

// Run starts the servers and keeps them running until ctx ends. No process and no goroutine of them
// is left when it returns. It may be called once.
func (s *Servers) Run(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	s.apply()
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	left := slices.Collect(maps.Values(s.running))
	s.mu.Unlock()
	for _, x := range left {
		<-x.ended
	}
	return nil
}

// Reload replaces the configuration. Only servers whose settings changed are restarted; it returns
// once those that stop have ended. A wrong Config changes nothing.
func (s *Servers) Reload(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	s.cfg = cfg.WithDefaults()
	stopped := s.apply()
	s.mu.Unlock()
	for _, x := range stopped {
		<-x.ended
	}
	return nil
}

// apply stops and starts what the configuration asks for; s.mu is held. It returns what it stopped.
func (s *Servers) apply() (stopped []*server) {
	if s.ctx == nil || s.ctx.Err() != nil {
		return nil
	}
	for name, x := range s.running {
		if cfg, ok := s.cfg.Servers[name]; ok && cfg.enabled() && reflect.DeepEqual(cfg, x.cfg) {
			x.anew()
			continue
		}
		x.stop()
		stopped = append(stopped, x)
		delete(s.running, name)
	}
	for name, cfg := range s.cfg.Servers {
		if !cfg.enabled() || s.running[name] != nil {
			continue
		}
		x := newServer(name, cfg, s.deps.Version, s.deps.Transport, s.deps.Log)
		ctx, stop := context.WithCancel(s.ctx)
		x.stop = stop
		s.running[name] = x
		go x.run(ctx)
	}
	return stopped
}

// Tools returns what an agent may use in a place, in a fixed order, at most 120: servers come in the
// order of their names, and what goes beyond is left out (Status.LeftOut). group tells that several
// people talk there. It waits for nobody.
func (s *Servers) Tools(agent, channel string, group bool) []Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Tool
	for _, name := range slices.Sorted(maps.Keys(s.running)) {
		if x := s.running[name]; x.cfg.serves(agent, channel, group) {
			list = append(list, x.offered(mostTools-len(list))...)
		}
	}
	return list
}

// Status tells how the servers are doing, by name.
func (s *Servers) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Status
	for _, name := range slices.Sorted(maps.Keys(s.running)) {
		list = append(list, s.running[name].status())
	}
	return list
}

// refusal returns what a server said when it refused a call by the protocol's own errors, "" = it did
// not.
func refusal(err error) string {
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		return ""
	}
	text := e.Message
	if r := []rune(text); len(r) > longestDescription {
		text = string(r[:longestDescription]) + "…"
	}
	return "The tool server refused the call: " + text
}
