package app_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"understudy/app"
)

// screen is what a person sees; shown is closed once it holds the line that is waited for.
type screen struct {
	mu    sync.Mutex
	text  bytes.Buffer
	until string
	shown chan struct{}
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.text.Write(b)
	if s.until != "" && strings.Contains(s.text.String(), s.until) {
		s.until = ""
		close(s.shown)
	}
	return n, err
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestFirstHour starts a bot as a newcomer does, without keys or configuration, and then breaks its
// configuration while it runs.
func TestFirstHour(t *testing.T) {
	dir := t.TempDir()
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"OPENCLAW_STATE_DIR": dir, "OLLAMA_HOST": "127.0.0.1:1"}[name]
		return v, ok
	}
	o := app.Options{Version: "test", Env: env, Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)}

	if code, text := verb(t, o, app.RemoteHealth); code != app.ExitFailed || !strings.Contains(text, "start one with: bot run") {
		t.Errorf("health without a bot: exit %d, %s", code, text)
	}

	seen := &screen{until: "  next ", shown: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- app.Serve(ctx, o, app.Std{Out: io.Discard, Err: seen}) }()
	select {
	case <-seen.shown:
	case code := <-ended:
		t.Fatalf("exit %d: %s", code, seen)
	}
	for _, want := range []string{
		"config   none; bot config init writes one",
		"found    no key",
		"models   sim/lead, then sim/understudy",
		"state    " + dir,
		"page     http://127.0.0.1:",
	} {
		if !strings.Contains(seen.String(), want) {
			t.Errorf("the start does not say %q:\n%s", want, seen)
		}
	}
	if strings.Contains(seen.String(), "token=") {
		t.Errorf("the token is shown where nobody watches:\n%s", seen)
	}
	if code, text := verb(t, o, app.RemotePage); code != app.ExitOK || !strings.HasPrefix(text, "http://127.0.0.1:") || !strings.Contains(text, "/?token=") {
		t.Errorf("bot page: exit %d, %s", code, text)
	}

	if err := os.WriteFile(filepath.Join(dir, "bot.yaml"), []byte("notices: {fallbak: all}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text := verb(t, o, app.RemoteReload); code == app.ExitOK || !strings.Contains(text, `bot.yaml:1:11: notices.fallbak: unknown key (did you mean "fallback"?)`) {
		t.Errorf("reload of a broken file: exit %d, %s", code, text)
	}
	if code, text := verb(t, o, status); code != app.ExitOK || !strings.Contains(text, "the newest configuration is not in use") {
		t.Errorf("status beside a broken file: exit %d, %s", code, text)
	}
	stop()
	if code := <-ended; code != app.ExitOK {
		t.Errorf("exit %d: %s", code, seen)
	}

	info, err := os.Stat(filepath.Join(dir, "web.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key of the page's cookies: %v, %v", info, err)
	}
}

// verb runs a verb beside the bot and returns its exit code and what it printed.
func verb(t *testing.T, o app.Options, f func(context.Context, app.Options, app.Std) int) (int, string) {
	t.Helper()
	var out bytes.Buffer
	return f(t.Context(), o, app.Std{Out: &out, Err: &out}), out.String()
}

func status(ctx context.Context, o app.Options, std app.Std) int {
	return app.RemoteStatus(ctx, o, std, false)
}

// TestPlayedTroubleEnds breaks the key of the offline models and mends it: `/sim … ok` promises that the lead is back, so
// the rest that the key earned meanwhile ends with it.
func TestPlayedTroubleEnds(t *testing.T) {
	for _, trouble := range []string{"billing", "auth"} {
		t.Run(trouble, func(t *testing.T) {
			dir := t.TempDir()
			o := app.Options{Version: "test", Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler), Env: func(name string) (string, bool) {
				v, ok := map[string]string{"OPENCLAW_STATE_DIR": dir, "OLLAMA_HOST": "127.0.0.1:1"}[name]
				return v, ok
			}}
			in, err := os.CreateTemp(t.TempDir(), "typed")
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if _, err := in.WriteString("/sim lead " + trouble + "\nhello\n/sim lead ok\nback?\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := in.Seek(0, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			var out, notes bytes.Buffer
			// One message found no answer, and a script wants to know.
			if code := app.Chat(t.Context(), o, app.Std{In: in, Out: &out, Err: &notes}, "main"); code != app.ExitFailed {
				t.Errorf("exit %d: %s", code, notes.String())
			}
			_, rest, broken := strings.Cut(out.String(), "None of the models could answer")
			if !strings.Contains(out.String(), "both models use the same one") || !broken || !strings.Contains(rest, "You said: “back?”") {
				t.Errorf("%s\n%s", out.String(), notes.String())
			}
		})
	}
}
