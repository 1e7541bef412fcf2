package redact_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"understudy/internal/redact"
	"understudy/internal/secret"
)

func TestTextHidesKnownAndShapedSecrets(t *testing.T) {
	r := redact.New()
	r.Add(secret.New("correct-horse-battery-staple"), secret.New("abc"))
	for _, x := range []struct{ in, hidden string }{
		{"key correct-horse-battery-staple end", "horse-battery"},
		{"https://api.example/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1/getMe", "HdqTcvCH1vGWJxfSeofSAs0K5PALD"},
		{"Authorization: Bearer 0123456789abcdef0123456789", "456789abcdef"},
		{"sk-ant-REDACTED", "abcdefghijkl"},
		{"xoxb-1234567890-abcdefghij", "567890-abc"},
		{"https://hooks.slack.com/commands/T0123/4567/AbCdEfGhIjKlMnOp", "AbCdEfGhIj"},
		{"token MTEwMjAxNTQzMDAwMDAwMDAx.GaBcDe.zyXWvutSRqpONmlkJIhgFEdcBA9876543210-_ is wrong", "RqpONmlkJI"},
		{"PATCH /api/v9/webhooks/110201543000000002/aW50ZXJhY3Rpb246MTIzNDU2Nzg5/messages/@original", "ZXJhY3Rpb2"},
		{"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----", "MIIEvQ"},
	} {
		if got := r.Text(x.in); strings.Contains(got, x.hidden) {
			t.Errorf("%q still shows %q", got, x.hidden)
		}
	}
	for _, same := range []string{"abc is a word", "the model sk is not a key", "turn 12345 took 3 s", "github.com/someone/understudy/webhooks/12/short"} {
		if got := r.Text(same); got != same {
			t.Errorf("%q became %q", same, got)
		}
	}
}

// TestSecretWithinSecret: a secret that begins with another one hides as a whole.
func TestSecretWithinSecret(t *testing.T) {
	for range 20 { // the order in which they came to be known does not matter
		r := redact.New()
		r.Add(secret.New("hunter2"), secret.New("hunter2hunter3"), secret.New("hunter2hunter3-and-more"))
		if got := r.Text("a hunter2hunter3-and-more b"); strings.Contains(got, "hunter3") || strings.Contains(got, "and") {
			t.Fatalf("still shows %q", got)
		}
	}
}

// TestKeyWithoutPunctuation: a key of letters and digits alone is recognised too.
func TestKeyWithoutPunctuation(t *testing.T) {
	key := "AIza" + strings.Repeat("Sy0", 12)
	if got := redact.New().Text(key); strings.Contains(got, "Sy0Sy0Sy0") {
		t.Errorf("still shows %q", got)
	}
}

func TestHandlerRedactsEverything(t *testing.T) {
	r := redact.New()
	r.Add(secret.New("topsecretvalue"))
	var out bytes.Buffer
	log := slog.New(r.Handler(slog.NewJSONHandler(&out, nil))).With("a", "topsecretvalue")
	log.WithGroup("g").Info("topsecretvalue", "s", "x topsecretvalue y", "e", errors.New("topsecretvalue"),
		slog.Group("in", "b", "topsecretvalue"), "n", 7)
	if strings.Contains(out.String(), "topsecret") || !strings.Contains(out.String(), `"n":7`) {
		t.Error(out.String())
	}
}
