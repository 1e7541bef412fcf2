package llm

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

// TestAudio: the audio endpoints refuse what the API refuses, share keys and faults with the others, and
// leave the others alone.
func TestAudio(t *testing.T) {
	srv := New()
	defer srv.Close()
	srv.Keys = []string{"k"}
	client := &http.Client{Transport: NewAudio(srv).Transport()}
	post := func(path, contentType, body string) (int, string, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.test/v1"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", contentType)
		req.Header.Set("Authorization", "Bearer k")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("Content-Type"), string(b)
	}
	for body, want := range map[string]int{
		`{"model":"m","voice":"v","input":"hi"}`:                                   200,
		`{"model":"m","voice":"v","input":"hi","response_format":"wav","speed":4}`: 200,
		`{"model":"m","voice":"v"}`:                                                400,
		`{"model":"m","voice":"v","input":"hi","speed":5}`:                         400,
		`{"model":"m","voice":"v","input":"hi","response_format":"au"}`:            400,
		`{"model":"m","voice":"v","input":"hi","pitch":1}`:                         400,
		`{"model":"m","voice":"v","input":"` + strings.Repeat("x", 4097) + `"}`:    400,
		`{`: 400,
	} {
		status, kind, got := post("/audio/speech", "application/json", body)
		if status != want {
			t.Errorf("%.60s: %d %s", body, status, got)
		}
		if status == 200 && (!strings.HasPrefix(kind, "audio/") || len(got) < 1000) {
			t.Errorf("%s: %d bytes of %s", body, len(got), kind)
		}
	}
	upload := func(fields ...string) (int, string) {
		t.Helper()
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for i := 0; i < len(fields); i += 2 {
			if fields[i] == "file" {
				part, err := w.CreateFormFile("file", fields[i+1])
				if err != nil {
					t.Fatal(err)
				}
				_, _ = part.Write([]byte("sound"))
				continue
			}
			_ = w.WriteField(fields[i], fields[i+1])
		}
		_ = w.Close()
		status, _, got := post("/audio/transcriptions", w.FormDataContentType(), b.String())
		return status, got
	}
	srv.Reply(Reply{Match: Match{Model: "w"}, Text: "heard"})
	if status, got := upload("model", "w", "file", "a.ogg"); status != 200 || got != `{"text":"heard"}` {
		t.Errorf("%d %s", status, got)
	}
	for _, bad := range [][]string{{"file", "a.ogg"}, {"model", "w"}, {"model", "w", "file", "a.png"}, {"model", "w", "file", "a.ogg", "x", "y"}} {
		if status, got := upload(bad...); status != 400 {
			t.Errorf("%v: %d %s", bad, status, got)
		}
	}
	if status, _, got := post("/chat/completions", "application/json", `{"model":"m","messages":[{"role":"user","content":"x"}]}`); status != 200 || !strings.Contains(got, `"ok"`) {
		t.Errorf("%d %s", status, got)
	}
	srv.Keys = []string{"other"}
	if status, _, _ := post("/audio/speech", "application/json", `{"model":"m","voice":"v","input":"hi"}`); status != 401 {
		t.Errorf("a wrong key: %d", status)
	}
}
