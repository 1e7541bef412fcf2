package authstore

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// notMounted is how the shell below ends where nobody may mount anything.
const notMounted = 77

// runChildOnReadOnlyDisk runs the test binary as a process that sees the folder of path on a disk that is
// mounted for reading.
func runChildOnReadOnlyDisk(t *testing.T, path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77; exec "$0"`, self, filepath.Dir(path))
	cmd.Env = append(os.Environ(), readerEnv+"="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{ // mounts of its own, which end with it
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	switch {
	case err == nil:
	case !errors.As(err, &ended), ended.ExitCode() == notMounted:
		t.Skipf("nothing can be mounted here: %v: %s", err, out)
	default:
		t.Fatalf("%v: %s", err, out)
	}
}

// A store on a disk that is mounted for reading is used, also with what stands in its log: a machine may
// have lost its power before the disk came back so.
func TestAReadOnlyDiskLosesNothing(t *testing.T) {
	for name, before := range map[string]func(*Store) error{
		"closed": (*Store).Close,
		"in use": func(*Store) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			s := mustOpen(t, path, Deps{})
			mustPut(t, s, key("openai:a"), signIn(time.Minute))
			if err := before(s); err != nil {
				t.Fatal(err)
			}
			runChildOnReadOnlyDisk(t, path)
		})
	}
}
