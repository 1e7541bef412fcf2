package slack

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"understudy/channels"
)

// ackTimeout bounds handing an acknowledgement to the connection. Without one, Slack delivers again.
const ackTimeout = 2 * time.Second

// errOneConnection ends the library's client where it would connect again by itself.
var errOneConnection = errors.New("one connection at a time")

// opener lets the library open one connection: how to go on after that is the supervisor's decision.
type opener struct {
	doer
	used atomic.Bool
}

// Do implements the library's HTTP client.
func (o *opener) Do(req *http.Request) (*http.Response, error) {
	if o.used.Swap(true) {
		return nil, errOneConnection
	}
	ctx, cancel := context.WithTimeout(req.Context(), callLimit) // the library has none
	defer cancel()
	return o.doer.Do(req.WithContext(ctx))
}

// connection is one Socket Mode connection.
type connection struct {
	s      *supervisor
	in     *inbox
	client *socketmode.Client
	opener *opener
	heard  atomic.Int64 // when anything arrived, in nanoseconds
	good   bool         // Slack has greeted
	end    error        // why it ended, as far as that is known
}

// connect makes one connection and serves it until it ends. It reports whether Slack greeted; the
// error is why it ended, nil if Slack ended it.
func (s *supervisor) connect(run context.Context) (bool, error) {
	ctx, cancel := context.WithCancel(run)
	defer cancel()
	c := &connection{s: s, in: s.inbox.Load(), opener: &opener{doer: doer{client: s.api.client}}}
	c.client = socketmode.New(s.api.library(c.opener), socketmode.OptionDialer(s.dialer(&c.heard)), socketmode.OptionPingInterval(pingLimit),
		socketmode.OptionReadLimit(largestFrame), socketmode.OptionLog(log.New(io.Discard, "", 0)))
	done := make(chan error, 1)
	go func() { done <- c.client.RunContext(ctx) }()
	for {
		select {
		case e := <-c.client.Events:
			if !c.handle(run, ctx, e) {
				cancel()
			}
		case err := <-s.refused:
			c.end = final{err}
			cancel()
		case err := <-done:
			return c.good, c.ended(err)
		}
	}
}

// ended says why the connection ended.
func (c *connection) ended(err error) error {
	if c.good {
		c.s.lost = time.Unix(0, c.heard.Load())
	}
	switch {
	case c.end != nil:
		return c.end
	case err == nil || errors.Is(err, context.Canceled):
		return nil
	}
	return c.s.api.failure("apps.connections.open", &c.opener.doer, err)
}

// handle serves one event of the library. It reports false when the connection is to end. What is
// received is stored within run; ctx ends with the connection.
func (c *connection) handle(run, ctx context.Context, e socketmode.Event) bool {
	switch e.Type {
	case socketmode.EventTypeHello:
		return c.greeted(run, e.Request)
	case socketmode.EventTypeConnectionError:
		failed, _ := e.Data.(*slack.ConnectionErrorEvent)
		if failed != nil && !errors.Is(failed.ErrorObj, errOneConnection) {
			c.end = c.s.api.failure("apps.connections.open", &c.opener.doer, failed.ErrorObj)
		}
		return false
	case socketmode.EventTypeErrorBadMessage: // unknown to the library, not to us
		bad, _ := e.Data.(*socketmode.ErrorBadMessage)
		var r socketmode.Request
		if bad == nil || decode(bad.Message, &r) != nil {
			c.s.log.Warn("frame skipped")
			return true
		}
		c.envelope(run, ctx, &r)
	case socketmode.EventTypeEventsAPI, socketmode.EventTypeSlashCommand, socketmode.EventTypeInteractive:
		c.envelope(run, ctx, e.Request)
	}
	return true
}

// greeted takes the hello of a new connection.
func (c *connection) greeted(run context.Context, r *socketmode.Request) bool {
	app := r.ConnectionInfo.AppID
	if app != "" && c.in.self.app != "" && app != c.in.self.app {
		c.end = final{errOtherApp(app, c.in.self.app)}
		return false
	}
	c.good = true
	c.s.log.Info("connected", "mode", c.s.cfg.Mode)
	c.s.report(channels.Connected, "")
	if c.s.lost.IsZero() || time.Since(c.s.lost) > channels.LeastGap {
		c.s.catchUp(run, c.s.marks(run))
	}
	return true
}

// envelope takes one envelope and acknowledges it once it is stored.
func (c *connection) envelope(run, ctx context.Context, r *socketmode.Request) {
	if r == nil || r.EnvelopeID == "" {
		return
	}
	ack := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(ctx, ackTimeout)
		defer cancel()
		if err := c.client.AckCtx(ctx, r.EnvelopeID, nil); err != nil {
			c.s.log.Debug("envelope not acknowledged", "kind", plainCode(r.Type), "error", err)
		}
	})
	receive := func() {
		if err := c.in.receive(run, r.Type, json.RawMessage(r.Payload), ack); err != nil {
			c.s.log.Warn("event not stored", "kind", plainCode(r.Type), "error", err)
		}
	}
	if !c.in.mustAsk(r.Type, r.Payload) {
		receive()
		return
	}
	select { // besides the other events, which would have to wait for the answer
	case c.s.asking <- struct{}{}:
		c.s.tasks.Go(func() {
			defer func() { <-c.s.asking }()
			receive()
		})
	default: // it comes again
		c.s.log.Warn("event not stored", "kind", plainCode(r.Type), "error", "too many wait for what their conversations are")
	}
}
