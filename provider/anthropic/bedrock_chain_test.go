package anthropic

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"understudy/llm"
	"understudy/provider"
)

// awsHosts answers for every host of AWS and remembers who was asked.
type awsHosts struct {
	status int
	body   string // of Bedrock; a stream if the status is 0
	other  http.HandlerFunc
	dead   bool // nobody but Bedrock is reached

	mu    sync.Mutex
	asked []string
	auth  string // of the last request to Bedrock
}

func (h *awsHosts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.asked = append(h.asked, r.Host)
	h.mu.Unlock()
	if !strings.HasPrefix(r.Host, "bedrock-runtime.") {
		h.other(w, r)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.auth = r.Header.Get("Authorization")
	if h.status != 0 {
		w.WriteHeader(h.status)
	} else {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	_, _ = io.WriteString(w, h.body)
}

// transport returns a transport whose every connection ends here.
func (h *awsHosts) transport(t *testing.T) *http.Transport {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		if h.dead && !strings.HasPrefix(address, "bedrock-runtime.") {
			return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
		}
		return new(net.Dialer).DialContext(ctx, "tcp", srv.Listener.Addr().String())
	}
	tr := &http.Transport{DialContext: dial, DialTLSContext: dial}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func (h *awsHosts) seen() (asked []string, auth string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked), h.auth
}

func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(os.Getenv(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestChainSources(t *testing.T) {
	ok := sse(begin, textOpen, textHi, close0, endTurn, stop)
	keys := "aws_access_key_id = " + accessKey + "\naws_secret_access_key = " + accessSecret + "\n"
	for _, tt := range []struct {
		name        string
		where       provider.AWS
		env         map[string]string
		config      string
		credentials string
		region      string
	}{
		{name: "environment", where: provider.AWS{Region: "eu-central-1"}, env: static(), region: "eu-central-1"},
		{name: "default profile", where: provider.AWS{Region: "eu-central-1"}, credentials: "[default]\n" + keys, region: "eu-central-1"},
		{
			name: "configured profile with its region", where: provider.AWS{Profile: "bots"}, region: "ap-southeast-2",
			config: "[profile bots]\nregion = ap-southeast-2\n", credentials: "[bots]\n" + keys,
		},
		{name: "profile of the environment", where: provider.AWS{Region: "us-west-2"}, env: map[string]string{"AWS_PROFILE": "bots"}, credentials: "[bots]\n" + keys, region: "us-west-2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ambient(t, tt.env)
			writeFile(t, "AWS_CONFIG_FILE", tt.config)
			writeFile(t, "AWS_SHARED_CREDENTIALS_FILE", tt.credentials)
			h := &awsHosts{body: ok}
			got := listen(t.Context(), t, newBedrock(t, h.transport(t), func(s *provider.Spec) { s.AWS = tt.where }), fromChain(), atBedrock("anthropic.claude-opus-5"))
			if got.err != nil || got.text != "hi" {
				t.Fatalf("got %+v", got)
			}
			asked, auth := h.seen()
			if want := "bedrock-runtime." + tt.region + ".amazonaws.com"; len(asked) != 1 || asked[0] != want {
				t.Errorf("asked %v, want %s", asked, want)
			}
			if !strings.Contains(auth, "Credential="+accessKey+"/20260301/"+tt.region+"/bedrock/aws4_request") {
				t.Errorf("Authorization %q", auth)
			}
		})
	}
}

// Credentials of a role are kept until they expire.
func TestChainRole(t *testing.T) {
	ambient(t, nil)
	writeFile(t, "AWS_CONFIG_FILE", "[profile bots]\nrole_arn = arn:aws:iam::123456789012:role/bots\nsource_profile = keys\nregion = eu-central-1\n")
	writeFile(t, "AWS_SHARED_CREDENTIALS_FILE", "[keys]\naws_access_key_id = "+accessKey+"\naws_secret_access_key = "+accessSecret+"\n")
	h := &awsHosts{body: sse(begin, textOpen, textHi, close0, endTurn, stop), other: answers(http.StatusOK, `<AssumeRoleResponse><AssumeRoleResult><Credentials>
		<AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>
		</Credentials></AssumeRoleResult></AssumeRoleResponse>`)}
	c := newBedrock(t, h.transport(t), func(s *provider.Spec) { s.AWS = provider.AWS{Profile: "bots"} })
	for range 2 {
		if got := listen(t.Context(), t, c, fromChain(), atBedrock("anthropic.claude-opus-5")); got.err != nil {
			t.Fatal(got.err)
		}
	}
	if asked, auth := h.seen(); len(asked) != 3 || asked[0] != "sts.eu-central-1.amazonaws.com" || !strings.Contains(auth, "Credential=ASIAROLE/") {
		t.Errorf("asked %v, Authorization %q", asked, auth)
	}
}

// The metadata service is asked only where that is configured.
func TestChainAndMetadata(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		t.Run(fmt.Sprint("imds ", allowed), func(t *testing.T) {
			ambient(t, nil)
			h := &awsHosts{other: answers(http.StatusNotFound, "")}
			got := listen(t.Context(), t, newBedrock(t, h.transport(t), func(s *provider.Spec) { s.AWS.IMDS = allowed }), fromChain(), atBedrock("anthropic.claude-opus-5"))
			if got.err == nil || got.err.Reason != llm.ReasonAuth || got.err.Rule != "bedrock-credentials" {
				t.Errorf("got %+v", got.err)
			}
			if asked, _ := h.seen(); slices.Contains(asked, "169.254.169.254") != allowed || !allowed && len(asked) > 0 {
				t.Errorf("asked %v", asked)
			}
		})
	}
}

func TestChainFailures(t *testing.T) {
	role := "[profile bots]\nrole_arn = arn:aws:iam::123456789012:role/bots\nsource_profile = keys\nregion = eu-central-1\n"
	keys := "[keys]\naws_access_key_id = " + accessKey + "\naws_secret_access_key = " + accessSecret + "\n"
	for _, tt := range []struct {
		name    string
		where   provider.AWS
		config  string
		other   http.HandlerFunc
		dead    bool
		reason  llm.Reason
		notSent bool
	}{
		{name: "nothing configured", where: provider.AWS{}, reason: llm.ReasonAuth},
		{name: "no such profile", where: provider.AWS{Region: "eu-central-1", Profile: "nobody"}, reason: llm.ReasonAuth},
		{name: "a region that is a host", where: provider.AWS{Region: "x.evil.example/"}, reason: llm.ReasonAuth},
		{
			name: "the role is refused", where: provider.AWS{Profile: "bots"}, config: role, reason: llm.ReasonAuth,
			other: answers(http.StatusForbidden, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>not authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>`),
		},
		{name: "an answer without anything", where: provider.AWS{Profile: "bots"}, config: role, reason: llm.ReasonAuth, other: answers(http.StatusOK, "")},
		{
			name: "half the credentials", where: provider.AWS{Profile: "bots"}, config: role, reason: llm.ReasonAuth,
			other: answers(http.StatusOK, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>AKID</AccessKeyId><SecretAccessKey>s</SecretAccessKey></Credentials></AssumeRoleResult></AssumeRoleResponse>`),
		},
		{
			name: "a web page", where: provider.AWS{Profile: "bots"}, config: role, reason: llm.ReasonAuth,
			other: answers(http.StatusOK, "<!DOCTYPE html><html><body>Please sign in to the network.<br></body></html>"),
		},
		{
			name: "AWS fails", where: provider.AWS{Profile: "bots"}, config: role, reason: llm.ReasonTimeout, notSent: true,
			other: answers(http.StatusServiceUnavailable, ""),
		},
		{
			name: "AWS is out of reach", where: provider.AWS{Profile: "bots"}, config: role, reason: llm.ReasonTimeout, notSent: true,
			dead: true,
		},
		{
			name: "a process that says too much", where: provider.AWS{Region: "eu-central-1", Profile: "bots"}, reason: llm.ReasonAuth,
			config: "[profile bots]\ncredential_process = echo " + accessSecret + "\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ambient(t, nil)
			writeFile(t, "AWS_CONFIG_FILE", tt.config)
			writeFile(t, "AWS_SHARED_CREDENTIALS_FILE", keys)
			h := &awsHosts{other: tt.other, dead: tt.dead}
			got := listen(t.Context(), t, newBedrock(t, h.transport(t), func(s *provider.Spec) { s.AWS = tt.where }), fromChain(), atBedrock("anthropic.claude-opus-5"))
			if got.err == nil || got.err.Reason != tt.reason || got.err.NotSent != tt.notSent {
				t.Fatalf("got %+v, %v", got.err, got.err.Err)
			}
			asked, auth := h.seen()
			if auth != "" || len(asked) > 1 {
				t.Errorf("asked %v", asked)
			}
			text := got.err.Error() + got.err.Message + got.err.Err.Error()
			if strings.Contains(text, accessSecret) {
				t.Errorf("the error shows a secret: %s", text)
			}
		})
	}
}

// A context that ends ends the wait for credentials.
func TestChainIsBoundedByTheAttempt(t *testing.T) {
	ambient(t, nil)
	writeFile(t, "AWS_CONFIG_FILE", "[profile bots]\nrole_arn = arn:aws:iam::123456789012:role/bots\nsource_profile = keys\nregion = eu-central-1\n")
	writeFile(t, "AWS_SHARED_CREDENTIALS_FILE", "[keys]\naws_access_key_id = "+accessKey+"\naws_secret_access_key = "+accessSecret+"\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	release := make(chan struct{})
	h := &awsHosts{other: func(http.ResponseWriter, *http.Request) {
		cancel(llm.ErrStopped)
		<-release
	}}
	got := listen(ctx, t, newBedrock(t, h.transport(t), func(s *provider.Spec) { s.AWS = provider.AWS{Profile: "bots"} }), fromChain(), atBedrock("anthropic.claude-opus-5"))
	close(release)
	if got.err == nil || got.err.Reason != llm.ReasonAborted {
		t.Errorf("got %+v", got.err)
	}
}

// A certificate authority of AWS_CA_BUNDLE is no obstacle.
func TestChainWithCABundle(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	env := static()
	env["AWS_CA_BUNDLE"] = filepath.Join(t.TempDir(), "ca.pem")
	ambient(t, env)
	writeFile(t, "AWS_CA_BUNDLE", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
	h := &awsHosts{body: sse(begin, textOpen, textHi, close0, endTurn, stop)}
	if got := listen(t.Context(), t, newBedrock(t, h.transport(t), nil), fromChain(), atBedrock("anthropic.claude-opus-5")); got.err != nil {
		t.Error(got.err)
	}
}

// Keys that AWS rejects are read again: the file may hold others by now.
func TestChainForgetsRejectedKeys(t *testing.T) {
	ambient(t, nil)
	file := func(id string) {
		writeFile(t, "AWS_SHARED_CREDENTIALS_FILE", "[default]\naws_access_key_id = "+id+"\naws_secret_access_key = "+accessSecret+"\n")
	}
	file("AKIDOLD")
	h := &awsHosts{status: http.StatusForbidden, body: `{"message":"The security token included in the request is invalid."}`}
	c := newBedrock(t, h.transport(t), nil)
	if got := listen(t.Context(), t, c, fromChain(), atBedrock("anthropic.claude-opus-5")); got.err == nil || got.err.Reason != llm.ReasonAuth {
		t.Fatalf("got %+v", got.err)
	}
	file("AKIDNEW")
	h.mu.Lock()
	h.status, h.body = 0, sse(begin, textOpen, textHi, close0, endTurn, stop)
	h.mu.Unlock()
	if got := listen(t.Context(), t, c, fromChain(), atBedrock("anthropic.claude-opus-5")); got.err != nil {
		t.Fatal(got.err)
	}
	if _, auth := h.seen(); !strings.Contains(auth, "AKIDNEW") {
		t.Errorf("Authorization %q", auth)
	}
}
