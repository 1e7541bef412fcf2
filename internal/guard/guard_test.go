package guard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
)

// book is a Resolver.
type book map[string][]string

func (b book) LookupNetIP(_ context.Context, _, host string) (out []netip.Addr, err error) {
	for _, a := range b[host] {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

func TestOnlyTheOpenInternetIsReached(t *testing.T) {
	names := book{
		"files.example": {"93.184.215.14"}, "inside.example": {"10.0.0.7"}, "mixed.example": {"93.184.215.14", "127.0.0.1"},
		"metadata.example": {"169.254.169.254"}, "six.example": {"fd00::1"}, "mapped.example": {"::ffff:192.168.0.1"}, "nowhere.example": nil,
		"proxy.internal": {"10.0.0.1"},
	}
	for address, want := range map[string]string{
		"files.example:443":   "93.184.215.14:443", // pinned: what was looked at is connected to
		"inside.example:443":  "",
		"mixed.example:443":   "",
		"metadata.example:80": "",
		"six.example:443":     "",
		"mapped.example:443":  "",
		"nowhere.example:443": "",
		"127.0.0.1:80":        "",
		"[::1]:80":            "",
		"100.100.100.200:80":  "",
		"proxy.internal:3128": "proxy.internal:3128", // the operator's own
		"no port":             "",
	} {
		reached := ""
		d := Dialer{Resolver: names, Guards: func(host string) bool { return host != "proxy.internal" }, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			reached = address
			return nil, errors.New("nobody is there")
		}}
		if _, err := d.DialContext(t.Context(), "tcp", address); err == nil || reached != want {
			t.Errorf("%s: reached %q, want %q (%v)", address, reached, want, err)
		}
	}
}
