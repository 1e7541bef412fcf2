package stt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/chat"
	"understudy/internal/emulate/llm"
	"understudy/internal/secret"
)

// behave makes this test binary a program that writes down speech, in a process of its own.
const behave = "UNDERSTUDY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(behave) {
	case "":
		os.Exit(m.Run())
	case "stdout":
		sound, _ := os.ReadFile(os.Args[1])
		_ = json.NewEncoder(os.Stdout).Encode([]any{filepath.Base(os.Args[1]), len(sound), os.Args[3]})
	case "file":
		_, _ = os.Stdout.WriteString("progress 100%\n")
		_ = os.WriteFile(os.Args[2], []byte("\xffHello\x07 there\n"), 0o600)
	case "flood":
		for range 1000 { // more than anybody takes
			_, _ = os.Stdout.Write(bytes.Repeat([]byte("x"), 1<<20))
		}
	case "long":
		_, _ = os.Stdout.Write(bytes.Repeat([]byte("x"), largestText+1))
	case "hang":
		<-time.After(10 * time.Minute)
	case "crash":
		os.Exit(1)
	}
}

const key = "sk-canary-0123456789"

var note = chat.Attachment{Name: "../../evil\r\nname.oga", MediaType: "audio/ogg; codecs=opus", Data: llm.Sound("opus"), Voice: true}

// play writes down speech with a service, in a bubble.
func play(t *testing.T, cfg Config, f func(t *testing.T, tr *Transcriber, srv *llm.Server)) {
	synctest.Test(t, func(t *testing.T) {
		srv := llm.New()
		defer srv.Close()
		cfg.Provider = OpenAI
		tr, err := New(cfg, Deps{
			Transport: llm.NewAudio(srv).Transport(),
			Find: func(_ context.Context, provider string) (secret.String, string, error) {
				if provider != "openai" {
					t.Errorf("the key of %s is looked for", provider)
				}
				return secret.New(key), "", nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		f(t, tr, srv)
	})
}

// form takes a request apart.
func form(t *testing.T, r llm.Request) (fields map[string]string, sound []byte) {
	t.Helper()
	_, params, err := mime.ParseMediaType(r.Header["Content-Type"][0])
	if err != nil {
		t.Fatal(err)
	}
	fields = map[string]string{}
	for parts := multipart.NewReader(bytes.NewReader(r.Body), params["boundary"]); ; {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return fields, sound
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		if p.FileName() != "" {
			sound, data = data, []byte(p.FileName()+" "+p.Header.Get("Content-Type"))
		}
		fields[p.FormName()] = string(data)
	}
}

func TestVoiceNotesAreWrittenDown(t *testing.T) {
	play(t, Config{Language: "en"}, func(t *testing.T, tr *Transcriber, srv *llm.Server) {
		srv.Reply(llm.Reply{Text: " Buy\x00 milk.\n"})
		text, err := tr.Transcribe(t.Context(), note)
		if err != nil || text != "Buy milk." {
			t.Fatalf("%q, %v", text, err)
		}
		r := srv.Requests()[0]
		fields, sound := form(t, r)
		want := map[string]string{"model": "gpt-4o-mini-transcribe", "response_format": "json", "language": "en", "file": "voice.ogg audio/ogg"}
		if diff := cmp.Diff(want, fields); diff != "" || !bytes.Equal(sound, note.Data) || r.Host != "api.openai.com" || r.Path != "/v1/audio/transcriptions" || r.Key != key {
			t.Errorf("%s%s: %s", r.Host, r.Path, diff)
		}
	})
}

func TestAnotherServiceGetsItsOwnKey(t *testing.T) {
	cfg := Config{BaseURL: "http://local.test/v1", APIKey: secret.New("local"), Model: "whisper"}
	play(t, cfg, func(t *testing.T, tr *Transcriber, srv *llm.Server) {
		if _, err := tr.Transcribe(t.Context(), note); err != nil {
			t.Fatal(err)
		}
		if r := srv.Requests()[0]; r.Host != "local.test" || r.Key != "local" || r.Model != "whisper" {
			t.Errorf("%s got %s", r.Host, r.Key)
		}
	})
}

func TestServicesThatFail(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault llm.Fault
		want  string
	}{
		{"no money", llm.Fault{Status: 402}, "openai: HTTP 402 (billing_error)"},
		{"silence", llm.Fault{Hang: true}, errOverdue.Error()},
		{"a torn connection", llm.Fault{Reset: true}, "openai: the connection broke"},
		{"a page", llm.Fault{Status: 200, Body: "<html>" + key}, "openai: the answer is not in the API's form"},
		{"another form", llm.Fault{Status: 200, Body: `{"texts":[]}`}, "openai: the answer is not in the API's form"},
		{"too much", llm.Fault{Status: 200, Body: strings.Repeat("x", largestText+1)}, "openai: the answer is too large"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			play(t, Config{}, func(t *testing.T, tr *Transcriber, srv *llm.Server) {
				srv.Fault(tc.fault)
				if _, err := tr.Transcribe(t.Context(), note); err == nil || err.Error() != tc.want || len(srv.Requests()) != 1 {
					t.Errorf("%v after %d requests", err, len(srv.Requests()))
				}
			})
		})
	}
}

// TestNobodyIsAskedInVain: what cannot be written down costs nothing.
func TestNobodyIsAskedInVain(t *testing.T) {
	play(t, Config{MaxMB: 1}, func(t *testing.T, tr *Transcriber, srv *llm.Server) {
		for want, a := range map[error]chat.Attachment{
			ErrTooLarge: {MediaType: "audio/ogg", Data: make([]byte, 1<<20+1)},
			ErrNoSound:  {MediaType: "image/png", Name: "x.png", Data: []byte("x")},
		} {
			if _, err := tr.Transcribe(t.Context(), a); !errors.Is(err, want) {
				t.Error(err)
			}
		}
		if _, err := tr.Transcribe(t.Context(), chat.Attachment{MediaType: "audio/ogg"}); !errors.Is(err, ErrNoSound) {
			t.Error(err)
		}
		if n := len(srv.Requests()); n != 0 {
			t.Errorf("%d requests", n)
		}
		if _, err := tr.Transcribe(t.Context(), chat.Attachment{Name: "clip.MP4", Data: []byte("x")}); err != nil {
			t.Error(err)
		}
		if name := srv.Requests()[0].LastUser; name != "voice.mp4" {
			t.Error(name)
		}
	})
}

func TestProgramsWriteDown(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	run := func(how string, timeout time.Duration) (string, error) {
		t.Helper()
		tr, err := New(Config{
			Provider: Command, Command: os.Args[0], Args: []string{"{{InputPath}}", "{{OutputPath}}", "{{Language}}"},
			Env: map[string]secret.String{behave: secret.New(how)}, TimeoutMs: int(timeout.Milliseconds()), MaxMB: 1,
		}, Deps{})
		if err != nil {
			t.Fatal(err)
		}
		return tr.Transcribe(t.Context(), note)
	}
	if text, err := run("stdout", time.Minute); err != nil || text != `["voice.ogg",1071,"auto"]` {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := run("file", time.Minute); err != nil || text != "Hello there" {
		t.Errorf("%q, %v", text, err)
	}
	for how, want := range map[string]string{
		"flood": "command: the program wrote too much", "long": "command: the program wrote too much", "crash": "command: the program ended with exit status 1",
	} {
		if _, err := run(how, time.Minute); err == nil || err.Error() != want {
			t.Errorf("%s: %v", how, err)
		}
	}
	if _, err := run("hang", 50*time.Millisecond); !errors.Is(err, errOverdue) {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestMistakes(t *testing.T) {
	for want, c := range map[string]Config{
		`provider: "x" is not`:    {Provider: "x"},
		"maxMb: 26":               {MaxMB: 26},
		"timeoutMs: -1":           {TimeoutMs: -1},
		`language: "English"`:     {Language: "English"},
		"baseUrl: an http":        {Provider: OpenAI, BaseURL: "ftp://x"},
		"baseUrl: it is":          {Provider: OpenAI, BaseURL: "https://x/v1?key=1"},
		"auth: the key":           {Provider: OpenAI, BaseURL: "https://x/v1", Auth: "openai"},
		"command: a program is a": {Provider: OpenAI, Command: "x"},
		"command: a program is n": {Provider: Command},
		"command: this is one":    {Provider: Command, Command: "hear it | sh"},
		"args: {{InputPath}}":     {Provider: Command, Command: "x"},
		"provider: baseUrl":       {Provider: Command, Command: "x", Model: "m"},
		`env: "A=B"`:              {Provider: Command, Command: "x", Env: map[string]secret.String{"A=B": {}}},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		if _, err := New(c, Deps{}); err == nil {
			t.Errorf("%q is taken", want)
		}
	}
	if tr, err := New(Config{}, Deps{}); tr != nil || err != nil {
		t.Error("something hears without being configured", err)
	}
}
