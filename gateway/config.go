package gateway

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"understudy/internal/secret"
)

// DefaultListen is the address of the HTTP listener (spec/chat.md §12 D7).
const DefaultListen = "127.0.0.1:8787"

// MinToken is the least length of a configured token, in characters.
const MinToken = 16

// Config is the configuration of the HTTP listener.
type Config struct {
	// Listen is "host:port"; default DefaultListen. Port 0 picks a free one.
	Listen string `yaml:"listen"`
	// Token opens the page and the API. Off loopback it is required; on loopback an empty one is
	// replaced by a random one at every start (spec/chat.md §12 D13).
	Token secret.String `yaml:"token"`
	// AllowedHosts are further names, without port, that the listener is reached by, for example
	// behind a reverse proxy. Loopback names are always allowed; off loopback IP addresses are too.
	AllowedHosts []string `yaml:"allowedHosts"`
}

// ErrNoToken is returned for a listener that others can reach without a token to keep them out.
var ErrNoToken = errors.New("token: required when listening off loopback: set gateway.token or OPENCLAW_GATEWAY_TOKEN")

// WithDefaults returns c with an unset listen address at its default.
func (c Config) WithDefaults() Config {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	return c
}

// Validate reports what is wrong with c, naming the key. An empty Listen means the default.
func (c Config) Validate() error {
	c = c.WithDefaults()
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %q is not host:port", c.Listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("listen: %q is not a port number", port)
	}
	switch n := len(c.Token.Reveal()); {
	case n == 0 && !loopbackName(host):
		return ErrNoToken
	case n > 0 && n < MinToken:
		return fmt.Errorf("token: too short, use at least %d characters", MinToken)
	}
	for i, h := range c.AllowedHosts {
		if h == "" || strings.ContainsAny(h, "/*@ ") || (strings.Contains(h, ":") && !isIP(h)) {
			return fmt.Errorf("allowedHosts[%d]: %q is not a host name without port", i, h)
		}
	}
	return nil
}

// NewToken returns a random token of 130 bits.
func NewToken() secret.String { return secret.New(rand.Text()) }

// loopbackName reports whether host, without port and brackets, always means this machine.
func loopbackName(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func isIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
