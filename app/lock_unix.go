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
		return nil, unusable(dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unusable(dir, err)
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

// unusable says what to do about a state directory that cannot be written.
func unusable(dir string, err error) error {
	return fmt.Errorf("the state directory %s cannot be used: %w (make it writable, or choose another one with OPENCLAW_STATE_DIR)", dir, err)
}
