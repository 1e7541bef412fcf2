package app_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/app"
)

// terminal opens a pseudo terminal: what is written to keyboard is typed on screen.
func terminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo terminals here:", err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	fd := int(keyboard.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skip("no pseudo terminals here:", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return keyboard, screen
}

// echoes reports whether a terminal shows what is typed.
func echoes(t *testing.T, f *os.File) bool {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return s.Lflag&unix.ECHO != 0
}

// asked is where a prompt goes; shown is closed with the first of it.
type asked struct {
	mu    sync.Mutex
	text  bytes.Buffer
	once  sync.Once
	shown chan struct{}
}

func (a *asked) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.once.Do(func() { close(a.shown) })
	return a.text.Write(b)
}

func (a *asked) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.String()
}

// TestInterruptedPromptEndsAtOnce ends the prompt for a secret as the first Ctrl-C does: the verb ends,
// nothing is stored, and the terminal shows again what is typed.
func TestInterruptedPromptEndsAtOnce(t *testing.T) {
	keyboard, screen := terminal(t)
	dir := t.TempDir()
	o := app.Options{Env: func(name string) (string, bool) { return dir, name == "OPENCLAW_STATE_DIR" }}
	ctx, interrupt := context.WithCancel(t.Context())
	said := &asked{shown: make(chan struct{})}
	ended := make(chan int, 1)
	go func() {
		ended <- app.AuthAdd(ctx, o, app.Std{In: screen, Out: said, Err: said}, app.NewCredential{Profile: "openai:work", Type: "api_key"})
	}()
	<-said.shown
	interrupt()
	if exit := <-ended; exit != app.ExitFailed || !strings.Contains(said.String(), "nothing was changed") {
		t.Errorf("exit %d: %s", exit, said)
	}
	if !echoes(t, screen) {
		t.Error("the terminal stays without an echo")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("something was stored: %v, %v", entries, err)
	}
	if _, err := keyboard.WriteString("end\n"); err != nil { // lets the abandoned read end
		t.Fatal(err)
	}
}
