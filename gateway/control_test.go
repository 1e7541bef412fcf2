package gateway

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// socketDir is short enough for a socket's address, unlike t.TempDir of a long test name.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bot")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func startControl(t *testing.T, path string, deps ControlDeps) (*Control, *ControlClient) {
	t.Helper()
	c, err := NewControl(path, deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the socket is left behind: %v", err)
		}
	})
	return c, NewControlClient(path)
}

func TestControl(t *testing.T) {
	b := &bot{state: Ready}
	reloaded := 0
	var reloadError error
	dir := socketDir(t)
	path := filepath.Join(dir, "state", ControlSocket)
	c, client := startControl(t, path, ControlDeps{Status: b, Reload: func(context.Context) error {
		reloaded++
		return reloadError
	}})
	c.Handle("POST /v1/echo", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: mode %o", filepath.Base(name), got)
		}
	}
	ctx := t.Context()
	if err := client.Health(ctx); err != nil {
		t.Errorf("health: %v", err)
	}
	b.state, b.problems = Degraded, []Problem{{"telegram/default", "down"}}
	var refused *ControlError
	if err := client.Health(ctx); !errors.As(err, &refused) || refused.Status != 503 || refused.Error() != "degraded; telegram/default: down" {
		t.Errorf("health: %v", err)
	}
	if s, err := client.Status(ctx); err != nil || s.Model.Selected != "a/b" {
		t.Errorf("status: %+v, %v", s, err)
	}
	if err := client.Reload(ctx); err != nil || reloaded != 1 {
		t.Errorf("reload: %v, %d times", err, reloaded)
	}
	reloadError = errors.New("bot.yaml: line 3: unknown key")
	if err := client.Reload(ctx); err == nil || err.Error() != reloadError.Error() {
		t.Errorf("reload: %v", err)
	}
	var echo map[string]int
	if err := client.Post(ctx, "/v1/echo", map[string]int{"n": 1}, &echo); err != nil {
		t.Errorf("echo: %v", err)
	}
	if d := cmp.Diff(map[string]int{"n": 1}, echo); d != "" {
		t.Errorf("echo:\n%s", d)
	}
	if err := client.Get(ctx, "/v1/nothing", nil); !errors.As(err, &refused) || refused.Status != 404 {
		t.Errorf("unknown route: %v", err)
	}
	if _, err := NewControl(path, ControlDeps{Status: b}); !errors.Is(err, ErrControlInUse) {
		t.Errorf("second server: %v", err)
	}
}

func TestControlWithoutServer(t *testing.T) {
	path := filepath.Join(socketDir(t), ControlSocket)
	if err := NewControlClient(path).Health(t.Context()); !errors.Is(err, ErrNoServer) {
		t.Errorf("no socket: %v", err)
	}
	// A process that died leaves its socket.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if err := NewControlClient(path).Health(t.Context()); !errors.Is(err, ErrNoServer) {
		t.Errorf("dead socket: %v", err)
	}
	_, client := startControl(t, path, ControlDeps{Status: &bot{state: Ready}})
	if err := client.Health(t.Context()); err != nil {
		t.Errorf("after the dead one: %v", err)
	}
}

func TestControlLeavesOtherFilesAlone(t *testing.T) {
	path := filepath.Join(socketDir(t), ControlSocket)
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewControl(path, ControlDeps{Status: &bot{}}); err == nil {
		t.Error("a file was taken for a socket")
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "precious" {
		t.Errorf("the file: %q, %v", data, err)
	}
}

func TestControlInADeepDirectory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("long socket paths work on Linux only")
	}
	path := filepath.Join(socketDir(t), strings.Repeat("deep/", 40), ControlSocket)
	_, client := startControl(t, path, ControlDeps{Status: &bot{state: Ready}})
	if err := client.Health(t.Context()); err != nil {
		t.Errorf("health: %v", err)
	}
	if _, err := NewControl(path, ControlDeps{Status: &bot{}}); !errors.Is(err, ErrControlInUse) {
		t.Errorf("second server: %v", err)
	}
}

func TestControlAsksTheKernelWhoCalls(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SO_PEERCRED is Linux")
	}
	path := filepath.Join(socketDir(t), ControlSocket)
	asked := make(chan int, 2)
	l, err := listenControl(path, func(uid int) bool {
		asked <- uid
		return len(asked) > 1 // the first caller is a stranger
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			t.Errorf("accept: %v", err)
		}
		accepted <- conn
	}()
	stranger, err := dialControl(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if n, err := stranger.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the stranger was answered: %d bytes", n)
	}
	friend, err := dialControl(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer friend.Close()
	(<-accepted).Close()
	l.Close()
	if uid := <-asked; uid != os.Geteuid() {
		t.Errorf("uid %d", uid)
	}
}
