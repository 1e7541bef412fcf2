package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"understudy/llm"
	"understudy/provider"
)

// The values of the anthropic-beta header that are sent, each only where it is needed.
const (
	betaFallback = sdk.AnthropicBetaServerSideFallback2026_07_01
	betaOAuth    = "oauth-2025-04-20" // bearer tokens of a sign-in or of `claude setup-token`
)

// Client asks one host. It holds no credential and is safe for concurrent use.
type Client struct {
	spec   provider.Spec
	direct bool
}

// New is the provider.Factory of provider.AnthropicMessages.
func New(spec provider.Spec) (llm.Client, error) {
	spec = spec.WithDefaults()
	if spec.BaseURL == "" {
		return nil, errors.New("anthropic: no base URL")
	}
	return &Client{spec: spec, direct: isDirect(spec)}, nil
}

// isDirect reports whether spec is Anthropic itself and not a compatible host: only Anthropic takes
// its own sign-in tokens and has the server-side fallback. Whoever routes the provider "anthropic"
// through a gateway that rejects the fallback sets its refusalFallback to off.
func isDirect(spec provider.Spec) bool {
	u, err := url.Parse(spec.BaseURL)
	return spec.ID == "anthropic" || err == nil && strings.EqualFold(u.Hostname(), "api.anthropic.com")
}

// Stream implements llm.Client.
func (c *Client) Stream(ctx context.Context, cred llm.Credential, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // frees the connection however the attempt ends

		fallback := c.allowsFallback(cred, req)
		c.attempt(ctx, req, fallback, provider.NewRecorder(c.spec.Transport), c.options(cred, fallback), yield)
	}
}

// attempt asks once and yields what comes of it.
func (c *Client) attempt(ctx context.Context, req llm.Request, fallback bool, rec *provider.Recorder, opts []option.RequestOption, yield func(llm.Event, error) bool) {
	res, err := c.send(ctx, req, fallback, rec, opts)
	if err != nil {
		yield(llm.Event{}, c.spec.Fail(ctx, provider.Evidence{Exchange: rec.Exchange(), Err: err}))
		return
	}
	defer res.Body.Close()
	r := reader{client: c, rec: rec, answer: newAnswer(req.Model), yield: yield}
	r.read(ctx, res)
}

// send makes the one request of an attempt and returns its response, whose body is unread.
func (c *Client) send(ctx context.Context, req llm.Request, fallback bool, rec *provider.Recorder, opts []option.RequestOption) (*http.Response, error) {
	params := c.params(req, fallback)
	var res *http.Response
	opts = append(opts,
		option.WithHTTPClient(rec.HTTPClient()),
		option.WithResponseInto(&res),
	)
	var err error
	if fallback {
		// Only the beta service knows the field `fallbacks`.
		service := sdk.NewBetaMessageService(opts...)
		err = service.NewStreaming(ctx, params).Err()
	} else {
		// The same body through the plain service, which marks no request as beta.
		var body []byte
		if body, err = json.Marshal(params); err != nil {
			return nil, fmt.Errorf("building the request: %w", err)
		}
		service := sdk.NewMessageService(opts...)
		err = service.NewStreaming(ctx, param.Override[sdk.MessageNewParams](json.RawMessage(body))).Err()
	}
	switch {
	case err != nil && res != nil:
		_ = res.Body.Close() // the recorder has what matters
		return nil, err
	case err != nil:
		return nil, err
	case res == nil:
		return nil, errors.New("no response")
	}
	return res, nil
}

// plainOptions keep the SDK from everything that is decided elsewhere.
func (c *Client) plainOptions() []option.RequestOption {
	return []option.RequestOption{option.WithMaxRetries(0), option.WithoutOpenTelemetry()}
}

// options are the SDK's options of one attempt: everything is said here, nothing is read from the
// environment, and nothing is retried.
func (c *Client) options(cred llm.Credential, fallback bool) []option.RequestOption {
	opts := append(c.plainOptions(), option.WithBaseURL(c.spec.BaseURL))
	for name, value := range c.spec.Headers {
		opts = append(opts, option.WithHeader(name, value.Reveal()))
	}
	if fallback {
		opts = append(opts, option.WithHeaderAdd("anthropic-beta", betaFallback))
	}
	return append(opts, c.authorize(cred)...)
}

// authorize says who asks. An API key goes out in the header the host wants; a setup token or an
// access token always as a bearer.
func (c *Client) authorize(cred llm.Credential) []option.RequestOption {
	if cred.Secret.IsZero() {
		return nil
	}
	if cred.Kind == llm.KindAPIKey && c.spec.Quirks.KeyHeader != "" {
		return []option.RequestOption{option.WithHeader(c.spec.Quirks.KeyHeader, cred.Secret.Reveal())}
	}
	opts := []option.RequestOption{option.WithHeader("Authorization", "Bearer "+cred.Secret.Reveal())}
	if c.direct && cred.Kind != llm.KindAPIKey {
		opts = append(opts, option.WithHeaderAdd("anthropic-beta", betaOAuth))
	}
	return opts
}

// allowsFallback reports whether Anthropic may answer with another model of its own when this one
// refuses (spec/failover.md §6.1).
func (c *Client) allowsFallback(cred llm.Credential, req llm.Request) bool {
	if !c.spec.RefusalFallback || !c.direct || cred.Kind != llm.KindAPIKey || req.Strict {
		return false
	}
	return req.Model.Model == "claude-fable-5" || req.Model.Model == "claude-opus-5"
}
