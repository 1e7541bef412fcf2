// Package guard connects to the open internet only: what strangers can make the bot fetch, or an
// operator wrote down as a URL, must not lead into the network the bot lives in (spec/chat.md §8, S9).
package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// ErrForbidden tells that a URL leads to an address that is not public.
var ErrForbidden = errors.New("leads to an address that is not public")

// Times of a connection to the network.
const (
	dialTime  = 30 * time.Second
	keepAlive = 30 * time.Second
)

// Resolver finds the addresses of a host; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Dial connects to an address; (*net.Dialer).DialContext is one.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer connects to public addresses only. The address that was looked at is the one it connects to,
// so a name cannot lead elsewhere a moment later.
type Dialer struct {
	Resolver Resolver // nil = the system's
	Dial     Dial     // nil = the network
	// Guards reports whether a host is to be looked at; nil = every host. The others, such as a proxy
	// of the operator's, are connected to as they are.
	Guards func(host string) bool
}

// DialContext is a Dial for hosts that nobody vouches for. A name that leads to several addresses is
// refused if one of them is not public: whoever owns the name must not choose which one counts.
func (g Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if g.Resolver == nil {
		g.Resolver = net.DefaultResolver
	}
	if g.Dial == nil {
		g.Dial = (&net.Dialer{Timeout: dialTime, KeepAlive: keepAlive}).DialContext
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if g.Guards != nil && !g.Guards(host) {
		return g.Dial(ctx, network, address)
	}
	found := []netip.Addr{}
	if ip, err := netip.ParseAddr(host); err == nil {
		found = append(found, ip)
	} else if found, err = g.Resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, fmt.Errorf("finding the host: %w", bare(err))
	}
	if len(found) == 0 {
		return nil, errors.New("the host has no address")
	}
	for _, ip := range found {
		if !public(ip) {
			return nil, ErrForbidden
		}
	}
	for _, ip := range found {
		var conn net.Conn
		if conn, err = g.Dial(ctx, network, net.JoinHostPort(ip.Unmap().String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// bare is a failed lookup without the name: it stands in a URL that may be a secret.
func bare(err error) error {
	var d *net.DNSError
	if errors.As(err, &d) {
		return errors.New(d.Err)
	}
	return err
}

// closed are the networks that net/netip has no word for: what is special about them is in the
// registries of IANA (RFC 6890 and its successors).
var closed = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // shared by carriers, and clouds' own services
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // 6to4 relays
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast
	netip.MustParsePrefix("64:ff9b::/96"),    // IPv4 behind a translator
	netip.MustParsePrefix("64:ff9b:1::/48"),  // the same, local
	netip.MustParsePrefix("100::/64"),        // discard
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, Teredo among them
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // 6to4: an IPv4 address inside
	netip.MustParsePrefix("fec0::/10"),       // site-local of old
}

// public reports whether an address belongs to the open internet. The metadata services of clouds live
// at link-local, shared and unique local addresses.
func public(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsValid() || !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, net := range closed {
		if net.Contains(ip) {
			return false
		}
	}
	return true
}
