//go:build unix

package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// takeState makes this process the one that serves a state directory (spec/chat.md §7.8). The lock
// ends with the process, however it ends.
func takeState(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s (stop it first, or choose another directory with OPENCLAW_STATE_DIR)", ErrRunning, dir)
		}
		return nil, fmt.Errorf("locking the state directory: %w", err)
	}
	return f, nil
}
