package gateway

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the longest path that fits a Unix socket address.
const maxSocketPath = 107

// shortPath returns a path of the same socket that fits an address: a long one is reached through
// its opened directory. It is valid until release.
func shortPath(path string) (short string, release func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	short = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	return short, func() { _ = dir.Close() }, nil
}

// peerUID asks the kernel for the user at the other end.
func peerUID(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	uid := -1
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			failed = err
			return
		}
		uid = int(cred.Uid)
	})
	if err == nil {
		err = failed
	}
	return uid, err
}
