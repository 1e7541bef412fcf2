package anthropic

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	emulator "understudy/internal/emulate/llm"
	"understudy/internal/secret"
	"understudy/llm"
	"understudy/provider"
)

// The credentials of AWS in these tests.
const (
	accessKey    = "AKIDEXAMPLE"
	accessSecret = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY"
	sessionToken = "FwoGZXIvYXdzEXAMPLE-session-token"
)

// ambient sets the whole environment that AWS's chain reads; nothing of this machine gets in.
func ambient(t *testing.T, env map[string]string) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	for name, value := range env {
		t.Setenv(name, value)
	}
}

// static is an environment with keys in it.
func static() map[string]string {
	return map[string]string{"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": accessSecret, "AWS_SESSION_TOKEN": sessionToken}
}

func newBedrock(t *testing.T, transport http.RoundTripper, change func(*provider.Spec)) llm.Client {
	t.Helper()
	spec := provider.Spec{
		ID: "amazon-bedrock", API: provider.Bedrock, Transport: transport, AWS: provider.AWS{Region: "eu-central-1"},
		Now: func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) },
	}
	if change != nil {
		change(&spec)
	}
	c, err := NewBedrock(spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func fromChain() llm.Credential { return llm.Credential{Kind: llm.KindToken} }

func atBedrock(model string) llm.Request {
	return llm.Request{Model: llm.ModelRef{Provider: "amazon-bedrock", Model: model}, Messages: []llm.Message{llm.Text(llm.RoleUser, "hi")}}
}

const profileARN = "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-opus-5"

func TestBedrockAuthorization(t *testing.T) {
	for _, tt := range []struct {
		name   string
		env    map[string]string
		change func(*provider.Spec)
		cred   llm.Credential
		bearer string // "" = signed
		url    string
	}{
		{
			name: "a Bedrock API key is a bearer", cred: apiKey("s3cret"), bearer: "Bearer s3cret",
			url: "https://bedrock-runtime.eu-central-1.amazonaws.com/model/anthropic.claude-opus-5/invoke-with-response-stream",
		},
		{
			name: "another key in the environment does not take its place", cred: apiKey("s3cret"), bearer: "Bearer s3cret",
			env: map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "from-the-environment"},
			url: "https://bedrock-runtime.eu-central-1.amazonaws.com/model/anthropic.claude-opus-5/invoke-with-response-stream",
		},
		{
			name: "a token with a text is a bearer", cred: llm.Credential{Kind: llm.KindToken, Secret: secret.New("s3cret")}, bearer: "Bearer s3cret",
			url: "https://bedrock-runtime.eu-central-1.amazonaws.com/model/anthropic.claude-opus-5/invoke-with-response-stream",
		},
		{
			name: "a token without one is the chain of AWS", cred: fromChain(), env: static(),
			url: "https://bedrock-runtime.eu-central-1.amazonaws.com/model/anthropic.claude-opus-5/invoke-with-response-stream",
		},
		{
			name: "the chain, although a key is in the environment", cred: fromChain(),
			env: map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "from-the-environment", "AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": accessSecret},
			url: "https://bedrock-runtime.eu-central-1.amazonaws.com/model/anthropic.claude-opus-5/invoke-with-response-stream",
		},
		{
			name: "the region of the environment, the path of a gateway", cred: fromChain(),
			env: map[string]string{"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": accessSecret, "AWS_REGION": "eu-central-1"},
			change: func(s *provider.Spec) {
				s.AWS, s.BaseURL = provider.AWS{}, "https://gateway.example/aws"
				s.Headers = map[string]secret.String{"X-Team": secret.New("blue")}
			},
			url: "https://gateway.example/aws/model/anthropic.claude-opus-5/invoke-with-response-stream",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ambient(t, tt.env)
			h := &host{body: sse(begin, textOpen, textHi, close0, endTurn, stop)}
			got := listen(t.Context(), t, newBedrock(t, h, tt.change), tt.cred, atBedrock("anthropic.claude-opus-5"))
			if got.err != nil {
				t.Fatal(got.err)
			}
			if h.request.URL.String() != tt.url || h.request.Host != "" && h.request.Host != h.request.URL.Host {
				t.Errorf("asked %s at %s, want %s", h.request.URL, h.request.Host, tt.url)
			}
			if tt.bearer == "" {
				checkSigned(t, h)
			} else if got := h.request.Header.Get("Authorization"); got != tt.bearer || h.request.Header.Get("X-Amz-Date") != "" {
				t.Errorf("Authorization %q", got)
			}
			fields := h.fields(t)
			if fields["anthropic_version"] != bedrockVersion || fields["model"] != nil || fields["stream"] != nil {
				t.Errorf("the body says %v, %v, %v", fields["anthropic_version"], fields["model"], fields["stream"])
			}
		})
	}
}

// checkSigned signs what the host got once more, and expects the same signature: it covers the
// request as it was sent.
func checkSigned(t *testing.T, h *host) {
	t.Helper()
	auth := h.request.Header.Get("Authorization")
	_, list, _ := strings.Cut(auth, "SignedHeaders=")
	list, _, _ = strings.Cut(list, ",")
	again, err := http.NewRequestWithContext(t.Context(), h.request.Method, h.request.URL.String(), bytes.NewReader(h.sent))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(list, ";") {
		if values := h.request.Header.Values(name); values != nil {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	at, err := time.Parse("20060102T150405Z", h.request.Header.Get("X-Amz-Date"))
	if err != nil {
		t.Fatalf("Authorization %q, X-Amz-Date: %v", auth, err)
	}
	sum := sha256.Sum256(h.sent)
	keys := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: accessSecret, SessionToken: h.request.Header.Get("X-Amz-Security-Token")}
	if err := v4.NewSigner().SignHTTP(t.Context(), keys, again, hex.EncodeToString(sum[:]), "bedrock", "eu-central-1", at); err != nil {
		t.Fatal(err)
	}
	if want := again.Header.Get("Authorization"); auth != want {
		t.Errorf("signed\n%s, want\n%s", auth, want)
	}
	for _, name := range []string{"host", "x-amz-date"} {
		if !strings.Contains(";"+list+";", ";"+name+";") {
			t.Errorf("%s is not signed (%s)", name, list)
		}
	}
}

// The id of an inference profile is one segment of the path, and signed as it is sent.
func TestBedrockInferenceProfile(t *testing.T) {
	ambient(t, static())
	srv := emulator.New()
	defer srv.Close()
	srv.Strict, srv.Models, srv.Keys = true, []string{profileARN}, []string{accessKey}
	got := listen(t.Context(), t, newBedrock(t, srv.Transport(), nil), fromChain(), atBedrock(profileARN))
	if got.err != nil || got.text != "ok" {
		t.Fatalf("got %+v", got)
	}
	h := &host{body: sse(begin, textOpen, textHi, close0, endTurn, stop)}
	listen(t.Context(), t, newBedrock(t, h, nil), fromChain(), atBedrock(profileARN))
	if path := h.request.URL.EscapedPath(); strings.Count(path, "/") != 3 || !strings.HasSuffix(path, "%2Feu.anthropic.claude-opus-5/invoke-with-response-stream") {
		t.Errorf("path %s", path)
	}
	checkSigned(t, h)
	listen(t.Context(), t, newBedrock(t, h, func(s *provider.Spec) { s.BaseURL = "https://gateway.example/a%2Fb" }), fromChain(), atBedrock(profileARN))
	if path := h.request.URL.EscapedPath(); !strings.HasPrefix(path, "/a%2Fb/model/arn") || !strings.HasSuffix(path, "%2Feu.anthropic.claude-opus-5/invoke-with-response-stream") {
		t.Errorf("path at a gateway %s", path)
	}
	checkSigned(t, h)
}

func TestBedrockExceptions(t *testing.T) {
	for _, tt := range []struct {
		kind    string
		message string
		status  int // as an HTTP error; 0 = it only comes in streams
		reason  llm.Reason
		detail  llm.Detail
		scope   llm.Scope
	}{
		{"throttlingException", "Too many tokens, please wait before trying again.", 429, llm.ReasonRateLimit, "", llm.ScopeModel},
		{"throttlingException", "Too many requests, please wait before trying again.", 429, llm.ReasonRateLimit, "", llm.ScopeModel},
		{"serviceUnavailableException", "Bedrock is unable to process your request.", 503, llm.ReasonOverloaded, "", ""},
		{"internalServerException", "The system encountered an unexpected error during processing. Try your request again.", 500, llm.ReasonTimeout, llm.DetailServerError, ""},
		{"modelStreamErrorException", "The system encountered an unexpected error during processing. Try your request again.", 0, llm.ReasonTimeout, llm.DetailServerError, ""},
		{"modelErrorException", "The system encountered an unexpected error during processing. Try your request again.", 424, llm.ReasonTimeout, llm.DetailServerError, ""},
		{"modelTimeoutException", "The model took too long.", 408, llm.ReasonTimeout, llm.DetailDeadline, ""},
		{"modelNotReadyException", "Model is not ready for inference. Wait and try your request again.", 429, llm.ReasonOverloaded, "", ""},
		{"validationException", "messages.0.content: Field required", 400, llm.ReasonFormat, "", ""},
		{"validationException", "Input is too long for requested model.", 400, llm.ReasonContextOverflow, "", ""},
		{"validationException", "The provided model identifier is invalid.", 400, llm.ReasonModelNotFound, "", ""},
		{"accessDeniedException", "You don't have access to the model with the specified model ID.", 403, llm.ReasonAuth, "", llm.ScopeModel},
		{"accessDeniedException", "User: arn:aws:iam::000000000000:user/bot is not authorized to perform: bedrock:InvokeModelWithResponseStream", 403, llm.ReasonAuth, "", ""},
		{"expiredTokenException", "The security token included in the request is expired", 403, llm.ReasonAuth, "", ""},
		{"resourceNotFoundException", "This model version has reached the end of its life.", 404, llm.ReasonModelNotFound, "", ""},
	} {
		body := fmt.Sprintf(`{"message":%q}`, tt.message)
		event := fmt.Sprintf(`{"__type":%q,"message":%q}`, tt.kind, tt.message)
		faults := map[string]emulator.Fault{
			"first in the stream":  {Error: event},
			"in the middle of one": {Say: "half an ans", Error: event},
		}
		if tt.status != 0 {
			header := strings.ToUpper(tt.kind[:1]) + tt.kind[1:] + ":http://internal.amazon.com/coral/com.amazon.bedrock/"
			faults["as a status"] = emulator.Fault{Status: tt.status, Body: body, Header: map[string]string{"X-Amzn-Errortype": header}}
		}
		for where, fault := range faults {
			t.Run(tt.kind+" "+tt.message+" "+where, func(t *testing.T) {
				srv := emulator.New()
				defer srv.Close()
				srv.Fault(fault)
				got := listen(t.Context(), t, newBedrock(t, srv.Transport(), nil), apiKey("k"), atBedrock("anthropic.claude-opus-5"))
				if got.err == nil || got.err.Reason != tt.reason || (tt.detail != "" && got.err.Detail != tt.detail) {
					t.Fatalf("got %+v", got.err)
				}
				if tt.scope != "" && got.err.Scope != tt.scope {
					t.Errorf("scope %q, want %q (%s)", got.err.Scope, tt.scope, got.err.Rule)
				}
				if got.text != fault.Say || len(srv.Requests()) != 1 {
					t.Errorf("said %q in %d requests", got.text, len(srv.Requests()))
				}
				if fault.Status != 0 && !strings.Contains(got.err.Err.Error(), "HTTP") {
					t.Errorf("cause %v", got.err.Err)
				}
			})
		}
	}
}

// What the model behind an exception said decides too.
func TestBedrockOriginalMessage(t *testing.T) {
	srv := emulator.New()
	defer srv.Close()
	srv.Fault(emulator.Fault{Error: `{"__type":"modelStreamErrorException","message":"The model failed.","originalStatusCode":400,"originalMessage":"prompt is too long: 204698 tokens > 200000 maximum"}`})
	got := listen(t.Context(), t, newBedrock(t, srv.Transport(), nil), apiKey("k"), atBedrock("anthropic.claude-opus-5"))
	if got.err == nil || got.err.Reason != llm.ReasonContextOverflow {
		t.Errorf("got %+v", got.err)
	}
}

func TestBedrockDamagedStreams(t *testing.T) {
	whole := bedrockStream(t)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 0x40
	for _, tt := range []struct {
		name string
		body []byte
	}{
		{"cut within a message", whole[:len(whole)-7]},
		{"cut within a prelude", whole[:5]},
		{"a wrong checksum", flipped},
		{"a header of an unknown type", []byte("\x00\x00\x01\xc3\x00\x00\x00K\xe1\xc5\x06\xdf" + strings.Repeat("0", 52))},
		{"a web page", []byte("<html><body>bad gateway, whatever the header says</body></html>")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &host{body: string(tt.body), header: http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}}
			got := listen(t.Context(), t, newBedrock(t, h, nil), apiKey("k"), atBedrock("anthropic.claude-opus-5"))
			if got.err == nil || (got.err.Reason != llm.ReasonTimeout && (tt.name != "cut within a prelude" || got.err.Reason != llm.ReasonEmptyResponse)) {
				t.Errorf("got %+v", got.err)
			}
		})
	}
}

// bedrockStream returns the bytes of a whole answer.
func bedrockStream(t testing.TB) []byte {
	t.Helper()
	srv := emulator.New()
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://bedrock.test/model/anthropic.claude-opus-5/invoke-with-response-stream",
		strings.NewReader(`{"anthropic_version":"bedrock-2023-05-31","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Transport().RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v: %s", res.StatusCode, err, body)
	}
	return body
}

// Whatever a host sends as an event stream, it is read to an end.
func FuzzUnwrap(f *testing.F) {
	whole := bedrockStream(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("\x00\x00\x00\x10\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		h := &host{body: string(body), header: http.Header{"Content-Type": {"application/vnd.amazon.eventstream"}}}
		wire := &bedrockWire{base: h}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://bedrock.test", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := wire.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error %v", err)
		}
		for line := range bytes.Lines(got) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("data: ")) {
				t.Errorf("the line %q is no data", line)
			}
		}
	})
}
