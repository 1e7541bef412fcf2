package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const (
	openLimit     = 15 * time.Second // from dialling to READY
	reopenLimit   = 30 * time.Second
	writeLimit    = 10 * time.Second
	goodbyeLimit  = time.Second
	largestFrame  = 32 << 20
	leastInterval = time.Second

	// closeResumable is the code the bot closes with when it comes back. 1000 and 1001 would end the
	// session at Discord.
	closeResumable = 4000
)

// Operations of the gateway.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

// line is one connection to the gateway. One goroutine reads, another one (attend) keeps it alive and
// ends it; both may write.
type line struct {
	ws      *websocket.Conn
	writing sync.Mutex
	hello   chan time.Duration
	seq     atomic.Int64 // of the last event that was received, for heartbeats; 0 = none
	waiting atomic.Bool  // the last heartbeat was not acknowledged yet
	zombie  atomic.Bool
}

// dial connects to a gateway.
func (b *Bot) dial(ctx context.Context, address string) (*line, error) {
	dialer := websocket.Dialer{NetDialContext: b.deps.Dial, Proxy: http.ProxyFromEnvironment}
	if b.deps.Dial != nil {
		dialer.Proxy = nil
	} else if u, err := url.Parse(b.cfg.Proxy); b.cfg.Proxy != "" && err == nil {
		dialer.Proxy = http.ProxyURL(u)
	}
	ws, resp, err := dialer.DialContext(ctx, address+"/?v=9&encoding=json", nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	switch {
	case err != nil && resp != nil:
		return nil, fmt.Errorf("gateway: status %d: %w", resp.StatusCode, b.api.harmless(err))
	case err != nil:
		return nil, fmt.Errorf("gateway: %w", b.api.harmless(err))
	}
	ws.SetReadLimit(largestFrame)
	ws.SetCloseHandler(func(int, string) error { return nil }) // no echo: the answer could be a 1000
	return &line{ws: ws, hello: make(chan time.Duration, 1)}, nil
}

// read waits for the next frame.
func (l *line) read() (frame, error) {
	kind, data, err := l.ws.ReadMessage()
	if err != nil {
		return frame{}, err
	}
	var f frame
	if kind != websocket.TextMessage {
		return frame{}, fmt.Errorf("gateway: unexpected frame of type %d", kind)
	}
	if err := json.Unmarshal(data, &f); err != nil || f.Op == nil {
		return frame{}, fmt.Errorf("gateway: unreadable frame of %d bytes", len(data))
	}
	return f, nil
}

func (l *line) write(op int, data any) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.ws.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if err := l.ws.WriteJSON(map[string]any{"op": op, "d": data}); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	return nil
}

// beat sends a heartbeat.
func (l *line) beat() error {
	if seq := l.seq.Load(); seq > 0 {
		return l.write(opHeartbeat, seq)
	}
	return l.write(opHeartbeat, nil)
}

// end closes the connection with a code; whoever reads it wakes up.
func (l *line) end(code int) {
	_ = l.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(goodbyeLimit))
	_ = l.ws.Close() // a peer that is gone cannot be told
}

// attend sends heartbeats, and ends the connection when one was not acknowledged before the next is
// due (two intervals after the last sign of life), or when ctx ends. It returns when done is closed.
func (l *line) attend(ctx context.Context, done <-chan struct{}) {
	var interval time.Duration
	due := time.NewTimer(time.Hour)
	due.Stop()
	defer due.Stop()
	for {
		select {
		case <-done:
			l.end(closeResumable)
			return
		case <-ctx.Done():
			l.end(websocket.CloseNormalClosure)
			<-done
			return
		case interval = <-l.hello:
			due.Reset(time.Duration(rand.Float64() * float64(interval)))
			continue
		case <-due.C:
		}
		if l.waiting.Swap(true) {
			l.zombie.Store(true)
		} else if l.beat() == nil {
			due.Reset(interval)
			continue
		}
		l.end(closeResumable)
		<-done
		return
	}
}
