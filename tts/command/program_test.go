//go:build unix

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"understudy/chat"
	"understudy/internal/emulate/llm"
	"understudy/internal/secret"
	"understudy/tts"
)

// behave makes this test binary a program that speaks, well or badly, in a process of its own.
const behave = "UNDERSTUDY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if how := os.Getenv(behave); how != "" {
		program(how, os.Args[1:])
		return
	}
	goleak.VerifyTestMain(m)
}

// told is what the program was given.
type told struct {
	Args  []string
	Env   []string
	Stdin string
	Dir   string
	Mode  string // of its folder
}

// program behaves as it is told: the first argument is where it writes.
func program(how string, args []string) {
	wav := llm.Sound("wav")
	switch how {
	case "speak":
		_ = os.WriteFile(args[0], wav, 0o600)
	case "stdout":
		_, _ = os.Stdout.Write(wav)
	case "tell":
		stdin, _ := io.ReadAll(os.Stdin)
		dir, _ := os.Getwd()
		info, _ := os.Stat(dir)
		b, _ := json.Marshal(told{args[1:], os.Environ(), string(stdin), dir, info.Mode().Perm().String()})
		_ = os.WriteFile(args[1], b, 0o600)
		_ = os.WriteFile(args[0], wav, 0o600)
	case "mute":
	case "page":
		_ = os.WriteFile(args[0], []byte("<html>"+strings.Repeat("no sound ", 20)), 0o600)
	case "crash":
		_, _ = os.Stderr.WriteString(strings.Repeat("complaint ", 1<<18)) // more than is read
		os.Exit(3)
	case "flood", "swell": // up to a size that nobody may take, should nobody stop it
		out := os.Stdout
		if how == "swell" {
			out, _ = os.Create(args[0])
		}
		for range 40 * tts.LargestSound >> 20 {
			_, _ = out.Write(make([]byte, 1<<20))
		}
		stay()
	case "link":
		_ = os.Symlink(args[1], args[0])
	case "hold": // a child of the ones below
		_, _ = os.OpenFile(args[0], os.O_WRONLY, 0)
		stay()
	case "hang":
		_ = child(args[1]).Start()
		stay()
	case "leave": // ends well; its child does not, and keeps the output open
		c := child(args[1])
		c.Stdout = os.Stdout
		_ = c.Start()
		_ = os.WriteFile(args[0], wav, 0o600)
	}
}

// stay is how a program hangs: much longer than any test, but not for ever, should nobody stop it.
func stay() { <-time.After(10 * time.Minute) }

func child(fifo string) *exec.Cmd {
	c := exec.Command(os.Args[0], fifo)
	c.Env = []string{behave + "=hold"}
	return c
}

// provider is this binary as a provider.
func provider(how string, args ...string) tts.Provider {
	c := tts.Config{Providers: map[string]tts.Provider{"x": {
		Command: os.Args[0], Args: append([]string{"{{OutputPath}}"}, args...), Env: map[string]secret.String{behave: secret.New(how)},
	}}}
	return c.WithDefaults().Providers["x"]
}

func job(p tts.Provider, text string) tts.Job {
	return tts.Job{ID: "x", Provider: p, Text: text, Format: tts.MP3, Voice: "en"}
}

func speak(t *testing.T, ctx context.Context, how string, args ...string) ([]byte, error) {
	t.Helper()
	before := leftovers(t)
	data, err := Engine{}.Speak(ctx, job(provider(how, args...), "Hello."))
	if after := leftovers(t); !slices.Equal(before, after) {
		t.Errorf("folders are left: %v", after)
	}
	return data, err
}

// leftovers are the private folders that exist.
func leftovers(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(os.TempDir(), "understudy-*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestProgramsSpeak(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, how := range []string{"speak", "stdout"} {
		if data, err := speak(t, t.Context(), how); err != nil || tts.Detect(data) != tts.WAV {
			t.Errorf("%s: %d bytes, %v", how, len(data), err)
		}
	}
}

func TestProgramsThatFail(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	private := filepath.Join(t.TempDir(), "private")
	if err := os.WriteFile(private, llm.Sound("wav"), 0o600); err != nil {
		t.Fatal(err)
	}
	for how, want := range map[string]string{
		"mute":  "the program made no sound",
		"crash": "the program ended with exit status 3",
		"flood": "the program wrote too much",
		"swell": "the program wrote too much",
		"link":  "what the program wrote is no file",
	} {
		if _, err := speak(t, t.Context(), how, private); err == nil || err.Error() != want {
			t.Errorf("%s: %v", how, err)
		}
	}
	p := provider("speak")
	p.Command = "no-such-program-anywhere"
	if _, err := (Engine{}).Speak(t.Context(), job(p, "Hello.")); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if err := Installed(p); !errors.Is(err, ErrNotFound) || Installed(provider("speak")) != nil || Installed(tts.Provider{}) != nil {
		t.Error(err)
	}
}

// TestWrongSoundIsNotSent: a program that ends well and writes a page has not spoken.
func TestWrongSoundIsNotSent(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := tts.NewSpeaker(tts.Deps{Engines: map[tts.Kind]tts.Engine{tts.Command: Engine{}}})
	policy := tts.Config{Auto: tts.Always, Providers: map[string]tts.Provider{"a": provider("page"), "b": provider("crash"), "c": provider("speak")}}.WithDefaults()
	sound, by, err := s.Speak(t.Context(), policy, chat.Speech{Text: "Hello."}, tts.Opus)
	if err != nil || by != "c" || sound.Voice || sound.MediaType != "audio/wav" {
		t.Errorf("%s %+v %v", by, sound.MediaType, err)
	}
	delete(policy.Providers, "c")
	_, _, err = s.Speak(t.Context(), policy, chat.Speech{Text: "Hello."}, tts.Opus)
	want := "a: what it made is no sound (186 bytes); b: the program ended with exit status 3"
	var failure *tts.Failure
	if !errors.As(err, &failure) || failure.Public() != want {
		t.Error(err)
	}
}

// gone waits until nobody holds the pipe any more.
func gone(t *testing.T, fifo *os.File) {
	t.Helper()
	if err := fifo.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := fifo.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a child of the program lives: %v", err)
	}
}

// pipe makes a named pipe and returns it once somebody holds its other end.
func pipe(t *testing.T) (path string, held func() *os.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan *os.File, 1)
	go func() {
		f, err := os.Open(path)
		if err != nil {
			t.Error(err)
		}
		opened <- f
	}()
	return path, func() *os.File {
		f := <-opened
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
}

// TestHangingProgramsDieWithTheirChildren: once its time is over, nothing of a program is left.
func TestHangingProgramsDieWithTheirChildren(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path, held := pipe(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	var fifo *os.File
	go func() {
		fifo = held() // the child runs
		cancel(over)
	}()
	if _, err := speak(t, ctx, "hang", path); !errors.Is(err, over) {
		t.Error(err)
	}
	gone(t, fifo)
}

// TestChildrenDoNotOutliveTheirProgram: a program that ended well leaves nobody behind either.
func TestChildrenDoNotOutliveTheirProgram(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path, held := pipe(t)
	if data, err := speak(t, t.Context(), "leave", path); err != nil || len(data) == 0 {
		t.Error(err)
	}
	gone(t, held())
}

// TestProgramsLearnLittle: a program is given its text as one argument or on its standard input, a folder
// of its own, and no variable of ours that it has no use for.
func TestProgramsLearnLittle(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("SLACK_BOT_TOKEN", "canary-token")
	ask := func(text string, args ...string) told {
		t.Helper()
		out := filepath.Join(t.TempDir(), "told")
		if _, err := (Engine{}).Speak(t.Context(), job(provider("tell", append([]string{out}, args...)...), text)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		var got told
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		got.Args = got.Args[1:]
		return got
	}
	const evil = `$(touch x); "a' {{OutputDir}} | b` + "\n" + `--flag`
	got := ask(evil, "-v", "{{Voice}}", "--", "{{Text}}")
	if !slices.Equal(got.Args, []string{"-v", "en", "--", evil}) || got.Stdin != "" {
		t.Errorf("%q, stdin %q", got.Args, got.Stdin)
	}
	if got := ask("-5 degrees", "{{Text}}"); !slices.Equal(got.Args, []string{" -5 degrees"}) {
		t.Errorf("%q", got.Args)
	}
	got = ask(evil)
	if got.Stdin != evil || len(got.Args) != 0 || got.Mode != "-rwx------" || !strings.HasPrefix(filepath.Base(got.Dir), "understudy-") {
		t.Errorf("%+v", got)
	}
	for _, v := range got.Env {
		name, _, _ := strings.Cut(v, "=")
		if !slices.Contains(append([]string{"TMPDIR", behave, "PWD"}, inherited...), name) {
			t.Errorf("it knows %s", v)
		}
	}
}

// TestComplaintsAreCut: what a program complains about is in the log of those who look for it, cut, and
// in no error.
func TestComplaintsAreCut(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var log bytes.Buffer
	e := Engine{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	_, err := e.Speak(t.Context(), job(provider("crash"), "Hello."))
	if err == nil || strings.Contains(err.Error(), "complaint") || !strings.Contains(log.String(), "complaint complaint") || log.Len() > 2*longestComplaint {
		t.Errorf("%v, %d bytes in the log", err, log.Len())
	}
}

// TestConversion: sound in another format than the channel's is converted where that can be done, and
// sent as it is where it cannot.
func TestConversion(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if FindFFmpeg(nil) != nil {
		t.Fatal("there is a program that is not there")
	}
	script := "#!/bin/sh\nfor out; do :; done\nexec /bin/cp \"${0%/*}/sound\" \"$out\"\n"
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "ffmpeg"), []byte(script), 0o700),
		os.WriteFile(filepath.Join(dir, "sound"), llm.Sound("opus"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	f := FindFFmpeg(nil)
	if f == nil {
		t.Fatal("not found")
	}
	s := tts.NewSpeaker(tts.Deps{Engines: map[tts.Kind]tts.Engine{tts.Command: Engine{}}, Convert: f.Convert})
	policy := tts.Config{Providers: map[string]tts.Provider{"x": provider("speak")}}.WithDefaults()
	sound, _, err := s.Speak(t.Context(), policy, chat.Speech{Text: "Hello."}, tts.Opus)
	if err != nil || !sound.Voice || sound.MediaType != "audio/ogg" {
		t.Errorf("%s, %v", sound.MediaType, err)
	}
	if err := os.Remove(filepath.Join(dir, "sound")); err != nil {
		t.Fatal(err)
	}
	sound, _, err = s.Speak(t.Context(), policy, chat.Speech{Text: "Hello."}, tts.Opus)
	if err != nil || sound.Voice || sound.MediaType != "audio/wav" {
		t.Errorf("%s, %v", sound.MediaType, err)
	}
}
