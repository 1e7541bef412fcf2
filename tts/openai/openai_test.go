package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/chat"
	"understudy/internal/emulate/llm"
	"understudy/internal/secret"
	"understudy/tts"
	"understudy/tts/openai"
)

const key = "sk-canary-0123456789"

// stage is a Speaker and the services it talks to.
type stage struct {
	*tts.Speaker
	srv   *llm.Server
	log   bytes.Buffer
	tried []string
}

func begin(t *testing.T, change func(*tts.Deps)) *stage {
	s := &stage{srv: llm.New()}
	s.srv.Keys = []string{key, ""}
	audio := llm.NewAudio(s.srv)
	t.Cleanup(s.srv.Close)
	engine := openai.Engine{
		Transport: audio.Transport(),
		Find: func(_ context.Context, provider string) (secret.String, string, error) {
			switch provider {
			case "openai":
				return secret.New(key), "", nil
			case "azure":
				return secret.New(key), "https://azure.example/v1/", nil
			}
			return secret.String{}, "", fmt.Errorf("nothing is known of %s", provider)
		},
	}
	deps := tts.Deps{
		Engines: map[tts.Kind]tts.Engine{tts.OpenAI: engine},
		Tried:   func(provider, outcome string) { s.tried = append(s.tried, provider+" "+outcome) },
		Log:     slog.New(slog.NewTextHandler(&s.log, nil)),
	}
	if change != nil {
		change(&deps)
	}
	s.Speaker = tts.NewSpeaker(deps)
	return s
}

func policy(providers map[string]tts.Provider) tts.Config {
	return tts.Config{Auto: tts.Always, Provider: "openai", Providers: providers}.WithDefaults()
}

var words = chat.Speech{Text: "Hello there, this is the answer."}

// play runs a test in a bubble, so that nothing that takes long does.
func play(t *testing.T, f func(t *testing.T, s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, nil)
		defer s.srv.Close()
		f(t, s)
	})
}

func TestSpeechIsMade(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		what := words
		what.Options = map[string]string{"voice": "nova", "speed": "1.5", "instructions": "cheerful"}
		sound, by, err := s.Speak(t.Context(), policy(nil), what, tts.Opus)
		if err != nil || by != "openai" {
			t.Fatal(by, err)
		}
		if sound.MediaType != "audio/ogg" || sound.Name != "answer.ogg" || !sound.Voice || tts.Detect(sound.Data) != tts.Opus || sound.Size != int64(len(sound.Data)) {
			t.Errorf("%s %s voice=%v", sound.Name, sound.MediaType, sound.Voice)
		}
		r := s.srv.Requests()[0]
		var body map[string]any
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"model": "gpt-4o-mini-tts", "input": words.Text, "voice": "nova", "response_format": "opus", "speed": 1.5, "instructions": "cheerful",
		}
		if diff := cmp.Diff(want, body); diff != "" || r.Host != "api.openai.com" || r.Path != "/v1/audio/speech" || r.Key != key {
			t.Errorf("%s%s with %s: %s", r.Host, r.Path, r.Key, diff)
		}
		if sound, _, err = s.Speak(t.Context(), policy(nil), words, tts.MP3); err != nil || sound.MediaType != "audio/mpeg" || sound.Voice {
			t.Errorf("%+v %v", sound.MediaType, err)
		}
		if diff := cmp.Diff([]string{"openai ok", "openai ok"}, s.tried); diff != "" {
			t.Error(diff)
		}
	})
}

// TestFailures: whatever happens to one provider, the next one speaks; and when none is left, the error
// says what happened and nothing else.
func TestFailures(t *testing.T) {
	page := "<html>" + strings.Repeat("nothing to hear ", 20)
	for _, tc := range []struct {
		name  string
		fault llm.Fault
		want  string
		tried string
	}{
		{"no money", llm.Fault{Status: 402}, "openai: HTTP 402 (billing_error)", "failed"},
		{"a limit", llm.Fault{Status: 429, RetryAfter: time.Hour}, "openai: HTTP 429 (rate_limit_error)", "failed"},
		{"a redirect", llm.Fault{Status: 307, Header: map[string]string{"Location": "https://evil.example/x"}}, "openai: HTTP 307 (invalid_request_error)", "failed"},
		{"a code that is none", llm.Fault{Status: 500, Body: `{"error":{"code":"your key ` + key + ` is bad"}}`}, "openai: HTTP 500", "failed"},
		{"a page", llm.Fault{Status: 200, Body: page}, "openai: what it made is no sound (326 bytes)", "failed"},
		{"nothing", llm.Fault{Status: 200, Raw: true}, "openai: what it made is no sound (0 bytes)", "failed"},
		{"a torn connection", llm.Fault{Reset: true}, "openai: the connection broke", "failed"},
		{"silence", llm.Fault{Hang: true}, "openai: took too long", "timeout"},
		{"too much", llm.Fault{Status: 200, Body: strings.Repeat("x", tts.LargestSound+1)}, "openai: the answer is too large", "failed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				tc.fault.Host = "api.openai.com"
				s.srv.Fault(tc.fault)
				_, by, err := s.Speak(t.Context(), policy(nil), words, tts.MP3)
				var failure *tts.Failure
				if !errors.As(err, &failure) || failure.Public() != tc.want || by != "openai" {
					t.Errorf("%s: %v", by, err)
				}
				next := policy(map[string]tts.Provider{"zeta": {BaseURL: "http://zeta.test/v1", Voice: "z"}})
				what := words
				what.Options = map[string]string{"voice": "nova"}
				if _, by, err = s.Speak(t.Context(), next, what, tts.MP3); err != nil || by != "zeta" {
					t.Errorf("%s: %v", by, err)
				}
				all := s.srv.Requests()
				last := all[len(all)-1]
				if last.Key != "" || last.Host != "zeta.test" || !bytes.Contains(last.Body, []byte(`"voice":"z"`)) {
					t.Errorf("%s got key %q and %s", last.Host, last.Key, last.Body)
				}
				want := []string{"openai " + tc.tried, "openai " + tc.tried, "zeta ok"}
				if diff := cmp.Diff(want, s.tried); diff != "" {
					t.Error(diff)
				}
				if text := s.log.String(); strings.Contains(text, key) || strings.Contains(text, "Hello") || strings.Contains(text, "://") {
					t.Errorf("the log tells too much: %s", text)
				}
			})
		})
	}
}

// TestKeysGoHome: a key goes to the address it was found with, and an address that is configured gets
// the key beside it only.
func TestKeysGoHome(t *testing.T) {
	for _, tc := range []struct {
		name         string
		p            tts.Provider
		host, key, e string
	}{
		{"openai's own", tts.Provider{}, "api.openai.com", key, ""},
		{"another model provider's", tts.Provider{Auth: "azure"}, "azure.example", key, ""},
		{"a local service without", tts.Provider{BaseURL: "http://local.test/v1"}, "local.test", "", ""},
		{"a service with its own", tts.Provider{BaseURL: "http://local.test/v1", APIKey: secret.New(key)}, "local.test", key, ""},
		{"a key alone", tts.Provider{APIKey: secret.New(key)}, "api.openai.com", key, ""},
		{"none to be found", tts.Provider{Auth: "nobody"}, "", "", "no key for nobody"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				_, _, err := s.Speak(t.Context(), policy(map[string]tts.Provider{"openai": tc.p}), words, tts.MP3)
				if tc.e != "" {
					if err == nil || !strings.Contains(err.Error(), tc.e) || len(s.srv.Requests()) != 0 {
						t.Errorf("%v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if r := s.srv.Requests()[0]; r.Host != tc.host || r.Key != tc.key {
					t.Errorf("%s got %q", r.Host, r.Key)
				}
			})
		})
	}
}

// TestStopEndsSpeech: nobody else is asked once the caller gave up.
func TestStopEndsSpeech(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.srv.Fault(llm.Fault{Hang: true})
		stopped := errors.New("stopped")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, stopped)
		defer cancel()
		_, _, err := s.Speak(ctx, policy(map[string]tts.Provider{"zeta": {BaseURL: "http://zeta.test/v1"}}), words, tts.MP3)
		if !errors.Is(err, stopped) {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"openai cancelled"}, s.tried); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLongTextsAreSummarised(t *testing.T) {
	long := chat.Speech{Text: strings.TrimSpace(strings.Repeat("A sentence of seven words is here. ", 100))}
	for _, tc := range []struct {
		name    string
		summary string
		err     error
		want    string
	}{
		{"in fewer words", "**Seven** words, a hundred times. [[tts]]", nil, "Seven words, a hundred times."},
		{"in too many", strings.Repeat("It says seven words again. ", 40), nil, strings.TrimSpace(strings.Repeat("It says seven words again. ", 7))},
		{"not, because nobody can", "", errors.New("no model"), strings.TrimSpace(strings.Repeat("A sentence of seven words is here. ", 5))},
		{"not, because nothing came", "```\n```", nil, strings.TrimSpace(strings.Repeat("A sentence of seven words is here. ", 5))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := begin(t, func(d *tts.Deps) {
					d.Summarize = func(_ context.Context, s tts.Summary) (string, error) {
						if s != (tts.Summary{Model: "m/small", Text: long.Text, Limit: 200}) {
							t.Errorf("%s is asked for %d characters", s.Model, s.Limit)
						}
						return tc.summary, tc.err
					}
				})
				defer s.srv.Close()
				p := policy(nil)
				p.MaxLength, p.Summarize, p.SummaryModel = 200, new(true), "m/small"
				if _, _, err := s.Speak(t.Context(), p, long, tts.MP3); err != nil {
					t.Fatal(err)
				}
				if got := s.srv.Requests()[0].LastUser; got != tc.want {
					t.Errorf("%q", got)
				}
			})
		})
	}
}

func TestNobodySpeaks(t *testing.T) {
	s := begin(t, nil)
	if _, _, err := s.Speak(t.Context(), tts.Config{Auto: tts.Always}.WithDefaults(), words, tts.MP3); !errors.Is(err, tts.ErrNobody) {
		t.Error(err)
	}
	if tts.Words(policy(nil), "```\ncode\n```") != nil || tts.Words(policy(nil), "**Hi** [[tts]]").Text != "Hi" {
		t.Error("what /tts audio says")
	}
}
