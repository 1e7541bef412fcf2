package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Times of a connection.
const (
	connectTime = 30 * time.Second // until a server has said what it offers
	readyTime   = 10 * time.Second // how long a call waits for a server that is away
	leastWait   = time.Second      // before the next attempt to connect, doubling
	longestWait = 2 * time.Minute
)

// State is the state of a server.
type State string

// The states.
const (
	Connecting State = "connecting"
	Ready      State = "ready"
	Away       State = "away" // it is tried again
)

// Status tells how a server is doing. Problem is fit for an operator and holds no secret.
type Status struct {
	Name    string
	State   State
	Problem string // of the last attempt; "" = none
	Tools   int
	// LeftOut tells that there was no room for some of its tools (see Servers.Tools).
	LeftOut bool
}

// server is one configured server. Its goroutine, run, owns the connection.
type server struct {
	name   string
	cfg    Server
	client *sdk.Client
	base   http.RoundTripper
	log    *slog.Logger
	wake   chan struct{}           // asks for a connection now
	again  chan struct{}           // asks for the list of tools
	broken chan *sdk.ClientSession // what a call found broken
	ended  chan struct{}           // closed when run has ended
	stop   context.CancelFunc

	mu      sync.Mutex
	state   State
	problem string
	tools   []Tool
	leftOut bool
	session *sdk.ClientSession
	ready   chan struct{} // closed while there is a session
}

func newServer(name string, cfg Server, version string, base http.RoundTripper, log *slog.Logger) *server {
	s := &server{
		name: name, cfg: cfg, base: base, log: log.With("server", name), state: Connecting,
		wake: make(chan struct{}, 1), again: make(chan struct{}, 1), broken: make(chan *sdk.ClientSession, 8), ended: make(chan struct{}), ready: make(chan struct{}),
	}
	s.client = sdk.NewClient(&sdk.Implementation{Name: "understudy", Version: version}, &sdk.ClientOptions{
		// Nothing of ours is offered to servers: no roots, no sampling, no elicitation.
		Capabilities:           &sdk.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { signal(s.again) },
		Logger:                 slog.New(slog.DiscardHandler),
	})
	return s
}

// signal leaves a mark that is read once.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run keeps the server connected until ctx ends.
func (s *server) run(ctx context.Context) {
	defer close(s.ended)
	for wait := leastWait; ; wait = min(2*wait, longestWait) {
		began := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > longestWait {
			wait = leastWait
		}
		s.lost(err)
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-t.C:
		}
		t.Stop()
	}
}

// serve connects and returns when the connection has ended; nothing of it is left then.
func (s *server) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	transport, p, err := s.transport()
	if err != nil {
		return err
	}
	defer p.end()
	session, err := s.connect(ctx, transport)
	if err != nil {
		return err
	}
	lost := make(chan error, 1)
	go func() { lost <- session.Wait() }()
	for {
		select {
		case <-ctx.Done():
			s.gone(session)
			_ = session.Close()
			<-lost
			return context.Cause(ctx)
		case err := <-lost:
			s.gone(session)
			_ = session.Close() // ends what the session still waits for
			if err == nil {
				return errEnded
			}
			return fmt.Errorf("the connection ended: %w", err)
		case <-s.again:
			if err := s.list(ctx, session); err != nil {
				s.log.Warn("tools not listed", "error", err.Error())
			}
		case x := <-s.broken:
			if x == session {
				_ = session.Close() // which loses it
			}
		case <-s.wake: // it is here
		}
	}
}

func (s *server) transport() (sdk.Transport, *program, error) {
	if s.cfg.URL != "" {
		return remote(s.cfg, s.base), nil, nil
	}
	p, t, err := launch(s.cfg, s.log)
	return t, p, err
}

// connect opens a session and learns the tools.
func (s *server) connect(ctx context.Context, t sdk.Transport) (*sdk.ClientSession, error) {
	limit, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	// The session lives as long as the context it was opened with, so the limit is kept beside it.
	type opened struct {
		session *sdk.ClientSession
		err     error
	}
	live, drop := context.WithCancel(ctx)
	done := make(chan opened, 1)
	go func() {
		session, err := s.client.Connect(live, t, nil)
		done <- opened{session, err}
	}()
	var o opened
	select {
	case o = <-done:
	case <-limit.Done():
		drop()
		if o = <-done; o.err == nil {
			_ = o.session.Close()
		}
		return nil, fmt.Errorf("no answer within %s", connectTime)
	}
	if o.err != nil {
		drop()
		return nil, o.err
	}
	context.AfterFunc(ctx, drop)
	if err := s.list(limit, o.session); err != nil {
		_ = o.session.Close()
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.problem, s.session = Ready, "", o.session
	close(s.ready)
	s.log.Info("tool server ready", "tools", len(s.tools))
	return o.session, nil
}

// list learns what the server offers.
func (s *server) list(ctx context.Context, session *sdk.ClientSession) error {
	var tools []Tool
	names, tooMany := map[string]bool{}, false
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("listing its tools: %w", err)
		}
		if !s.cfg.Tools.offers(t.Name) || names[t.Name] {
			continue
		}
		if tooMany = len(tools) == mostTools; tooMany {
			break
		}
		raw, err := schema(t.InputSchema)
		if err != nil {
			s.log.Warn("tool left out", "tool", t.Name, "reason", err.Error())
			continue
		}
		names[t.Name] = true
		tools = append(tools, s.tool(t, raw))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools, s.leftOut = tools, false
	if tooMany {
		s.leaveOut()
	}
	return nil
}

// leaveOut notes that not all tools are offered, and logs it once; s.mu is held.
func (s *server) leaveOut() {
	if !s.leftOut {
		s.leftOut = true
		s.log.Warn("tools left out", "reason", "all servers together have more than a request may hold", "most", mostTools)
	}
}

func (s *server) tool(t *sdk.Tool, raw json.RawMessage) Tool {
	name := t.Name
	return Tool{
		Server: s.name, Name: publicName(s.name, name), Description: description(t), Schema: raw,
		Approve: matches(s.cfg.Tools.Approve, name), Timeout: time.Duration(s.cfg.TimeoutSeconds) * time.Second,
		call: func(ctx context.Context, input json.RawMessage) (Result, error) { return s.call(ctx, name, input) },
	}
}

// lost notes that there is no connection.
func (s *server) lost(err error) {
	s.log.Warn("tool server away", "error", err.Error())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.problem = Away, err.Error()
}

// gone takes a session away from calls.
func (s *server) gone(session *sdk.ClientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == session {
		s.session, s.ready = nil, make(chan struct{})
	}
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{Name: s.name, State: s.state, Problem: s.problem, Tools: len(s.tools), LeftOut: s.leftOut}
}

// offered returns the first of the tools, at most so many.
func (s *server) offered(most int) []Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tools) > most {
		s.leaveOut()
	}
	return s.tools[:min(len(s.tools), most)]
}

// anew forgets that tools were left out.
func (s *server) anew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leftOut = false
}

var errEnded = errors.New("the server ended the connection")

// Errors of calls, in words for a model.
var (
	errAway    = errors.New("the tool server is not reachable now")
	errTooSlow = errors.New("the tool did not answer in time; whether it did the work is unknown")
	errBroken  = errors.New("the connection to the tool server broke during the call; whether it did the work is unknown")
)

// call makes one call.
func (s *server) call(ctx context.Context, tool string, input json.RawMessage) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(s.cfg.TimeoutSeconds)*time.Second, errTooSlow)
	defer cancel()
	session, err := s.connected(ctx)
	if err != nil {
		return Result{}, err
	}
	if len(input) == 0 {
		input = json.RawMessage(`{}`)
	}
	r, err := session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: input})
	switch {
	case err == nil:
		return Result{Text: text(r, s.cfg.MaxOutputBytes), Files: files(r), IsError: r.IsError}, nil
	case ctx.Err() != nil:
		return Result{}, context.Cause(ctx)
	}
	s.log.Warn("tool call failed", "tool", tool, "error", err.Error())
	if refused := refusal(err); refused != "" {
		return Result{Text: refused, IsError: true}, nil
	}
	s.gone(session) // the next call waits for a new one
	select {
	case s.broken <- session:
	default: // somebody said so already
	}
	return Result{}, errBroken
}

// connected returns the session, after a moment if the server is being started again.
func (s *server) connected(ctx context.Context) (*sdk.ClientSession, error) {
	t := time.NewTimer(readyTime)
	defer t.Stop()
	for {
		s.mu.Lock()
		session, ready := s.session, s.ready
		s.mu.Unlock()
		if session != nil {
			return session, nil
		}
		signal(s.wake)
		select {
		case <-ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-t.C:
			return nil, errAway
		case <-s.ended:
			return nil, errAway
		}
	}
}
