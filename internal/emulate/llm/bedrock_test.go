package llm_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"understudy/internal/emulate/llm"
)

func TestBedrockRefusesWhatTheAPIRefuses(t *testing.T) {
	const good = `{"anthropic_version":"bedrock-2023-05-31","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	const signed = "AWS4-HMAC-SHA256 Credential=AKID/20260301/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature="
	hash := strings.Repeat("0a", 32)
	for _, tt := range []struct {
		name, model, body string
		header            []string
		status            int
		kind              string
	}{
		{name: "good", body: good, status: 200},
		{name: "signed", body: good, header: []string{"Authorization", signed + hash, "X-Amz-Date", "20260301T120000Z"}, status: 200},
		{name: "signed without a date", body: good, header: []string{"Authorization", signed + hash}, status: 403, kind: "IncompleteSignatureException"},
		{name: "half a signature", body: good, header: []string{"Authorization", signed, "X-Amz-Date", "20260301T120000Z"}, status: 403, kind: "IncompleteSignatureException"},
		{name: "another key", body: good, header: []string{"Authorization", "Bearer other"}, status: 401, kind: "UnrecognizedClientException"},
		{name: "another model", model: "nobody", body: good, status: 404, kind: "ResourceNotFoundException"},
		{name: "no version", body: strings.Replace(good, "bedrock-2023-05-31", "2023-06-01", 1), status: 400, kind: "ValidationException"},
		{name: "the model in the body", body: strings.Replace(good, "{", `{"model":"m",`, 1), status: 400, kind: "ValidationException"},
		{name: "no limit", body: strings.Replace(good, `"max_tokens":9,`, "", 1), status: 400, kind: "ValidationException"},
		{name: "no JSON", body: "{", status: 400, kind: "ValidationException"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := llm.New()
			defer srv.Close()
			srv.Strict, srv.Models, srv.Keys = true, []string{"anthropic.claude"}, []string{"k", "AKID"}
			model := tt.model
			if model == "" {
				model = "anthropic.claude"
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://bedrock.test/model/"+model+"/invoke-with-response-stream", strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer k")
			for i := 0; i < len(tt.header); i += 2 {
				req.Header.Set(tt.header[i], tt.header[i+1])
			}
			transport := srv.Transport()
			defer transport.CloseIdleConnections()
			res, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			kind, _, _ := strings.Cut(res.Header.Get("X-Amzn-Errortype"), ":")
			if res.StatusCode != tt.status || kind != tt.kind {
				t.Errorf("status %d %s: %s", res.StatusCode, kind, body)
			}
			if tt.status == 200 && res.Header.Get("Content-Type") != "application/vnd.amazon.eventstream" {
				t.Errorf("content type %q", res.Header.Get("Content-Type"))
			}
		})
	}
}
