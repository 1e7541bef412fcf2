//go:build !linux

package gateway

import (
	"net"
	"os"
)

// shortPath returns path: a path that does not fit a socket address is an error when bound.
func shortPath(path string) (short string, release func(), err error) {
	return path, func() {}, nil
}

// peerUID trusts the modes of the socket and of its directory, the only check that is portable.
func peerUID(*net.UnixConn) (int, error) { return os.Geteuid(), nil }
