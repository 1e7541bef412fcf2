package provider

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// The limits of connecting. The wait for an answer has none here: the context of the attempt is
// its limit (spec/failover.md §8.4).
const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleConnTimeout  = 90 * time.Second
)

// NewTransport returns the transport for one provider: HTTP/2 where the host speaks it, bounded
// dialling and handshakes, the proxy of the environment, no limit on the whole request.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   handshakeTimeout,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       idleConnTimeout,
		ExpectContinueTimeout: time.Second,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: 30 * time.Second, // a dead connection is noticed, not inherited
			PingTimeout:     15 * time.Second,
		},
	}
}
