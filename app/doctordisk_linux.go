package app

import "golang.org/x/sys/unix"

// fileSystem returns the free bytes where dir lies, and the name of the file system when it is one
// over a network.
func fileSystem(dir string) (free uint64, network string, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, "", err
	}
	const (
		smb2 = 0xfe534d42
		cifs = 0xff534d42
		ceph = 0x00c36400
	)
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC:
		network = "NFS"
	case unix.SMB_SUPER_MAGIC, smb2, cifs:
		network = "SMB"
	case unix.AFS_SUPER_MAGIC:
		network = "AFS"
	case unix.V9FS_MAGIC:
		network = "9P"
	case ceph:
		network = "Ceph"
	}
	return st.Bavail * uint64(st.Bsize), network, nil
}
