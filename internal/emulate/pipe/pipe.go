// Package pipe is an in-memory network with one server on it, for emulators.
package pipe

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Network accepts in-memory connections. Both ends block only on channels, so time in a
// testing/synctest bubble can move on while they wait. It implements net.Listener.
type Network struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// New returns a network on which nobody serves yet.
func New() *Network {
	return &Network{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the server, whatever the address.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.conns <- server:
		return client, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Transport returns a new HTTP transport whose every connection leads to the server.
func (n *Network) Transport() *http.Transport {
	return &http.Transport{DialContext: n.Dial, MaxIdleConnsPerHost: 256}
}

// Accept implements net.Listener.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener: no further connection is made.
func (n *Network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr implements net.Listener.
func (*Network) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "emulator" }
