package slack

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"understudy/internal/guard"
)

// ownHost reports whether a host is the platform's: files of people come from there, so its name must
// lead to the open internet (spec/chat.md §8, S9).
func ownHost(host string) bool {
	return strings.HasSuffix(host, ".slack.com") || host == "slack.com" || strings.HasSuffix(host, ".slack-edge.com")
}

// network is the transport to the real server. It speaks HTTP/1.1 only: one dead HTTP/2 connection
// would hold up all calls at once.
func network(proxy string) http.RoundTripper {
	t := &http.Transport{
		Proxy:                 throughProxy(proxy),
		TLSHandshakeTimeout:   10 * time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   16,
		ExpectContinueTimeout: time.Second,
		Protocols:             new(http.Protocols),
		DialContext:           guard.Dialer{Guards: ownHost}.DialContext,
	}
	t.Protocols.SetHTTP1(true)
	return t
}

func throughProxy(proxy string) func(*http.Request) (*url.URL, error) {
	if u, err := url.Parse(proxy); proxy != "" && err == nil {
		return http.ProxyURL(u)
	}
	return http.ProxyFromEnvironment
}

// Times of a Socket Mode connection.
const (
	silenceLimit = 35 * time.Second // Slack pings several times within this
	pingLimit    = 30 * time.Second // of the library, which looks at it twice
	handshake    = 20 * time.Second
)

// Sizes of Socket Mode frames.
const (
	writeBuffer  = 32 << 10 // an acknowledgement is never split: Slack would not put it together
	largestFrame = 8 << 20
)

// dialer makes the connection of Socket Mode and notes in heard when anything arrives. A connection on
// which nothing arrives for silenceLimit ends: what the network does to old connections is not always
// told to their ends, and a reader without a deadline would wait for ever (spec/chat.md §9.2).
func (b *Bot) dialer(heard *atomic.Int64) *websocket.Dialer {
	dial := b.deps.Dial
	d := &websocket.Dialer{HandshakeTimeout: handshake, WriteBufferSize: writeBuffer}
	if dial == nil {
		dial = (&net.Dialer{Timeout: handshake, KeepAlive: 15 * time.Second}).DialContext
		d.Proxy = throughProxy(b.cfg.Proxy)
	}
	d.NetDialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return watched{conn, heard}, nil
	}
	return d
}

// watched is a connection that ends when nothing arrives.
type watched struct {
	net.Conn
	heard *atomic.Int64
}

// Read implements net.Conn.
func (c watched) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(silenceLimit)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
	}
	return n, err
}
