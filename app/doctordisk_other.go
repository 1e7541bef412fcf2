//go:build unix && !linux

package app

import "golang.org/x/sys/unix"

// fileSystem returns the free bytes where dir lies. Which file systems are remote is known for
// Linux only.
func fileSystem(dir string) (free uint64, network string, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, "", err
	}
	return uint64(st.Bavail) * uint64(st.Bsize), "", nil
}
