package anthropic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"github.com/anthropics/anthropic-sdk-go/v2/bedrock"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/aws/aws-sdk-go-v2/aws"

	"understudy/llm"
	"understudy/provider"
)

// bedrockVersion is the version of the Messages API that Bedrock asks for, in the body.
const bedrockVersion = "bedrock-2023-05-31"

// Bedrock asks Anthropic's models at Amazon Bedrock. What is said and answered is the Messages API;
// only its wrapping differs:
//
//	Client ── the SDK's bedrock package ── Recorder ── bedrockWire ── network
//	          model id into the path        status      signs, and unwraps the event stream
//
// The SDK could do the last step too, but it prefers a key of the environment to the credential of
// the attempt. Bedrock is safe for concurrent use.
type Bedrock struct {
	client *Client
	base   *url.URL // nil = the host of the region
	chain  *chain
}

// NewBedrock is the provider.Factory of provider.Bedrock.
func NewBedrock(spec provider.Spec) (llm.Client, error) {
	spec = spec.WithDefaults()
	b := &Bedrock{client: &Client{spec: spec}, chain: newChain(spec)}
	if spec.BaseURL != "" {
		base, err := url.Parse(spec.BaseURL)
		if err != nil || base.Host == "" {
			return nil, errors.New("anthropic: the base URL of bedrock names no host")
		}
		b.base = base
	}
	return b, nil
}

// Stream implements llm.Client. A secret, of whatever kind, is sent as a bearer token: it is a
// Bedrock API key. A token without a secret stands for the credential chain of AWS, and the request
// is signed (SigV4).
func (b *Bedrock) Stream(ctx context.Context, cred llm.Credential, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()

		wire, err := b.wire(ctx, cred)
		if err != nil {
			yield(llm.Event{}, b.refused(ctx, err))
			return
		}
		b.client.attempt(ctx, req, false, provider.NewRecorder(wire), b.options(wire.region), func(e llm.Event, err error) bool {
			if wire.keys != nil && isAuth(err) {
				b.chain.forget() // they may have been replaced meanwhile
			}
			return yield(e, err)
		})
	}
}

func isAuth(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && (e.Reason == llm.ReasonAuth || e.Reason == llm.ReasonAuthPermanent)
}

// wire finds out who asks, and where.
func (b *Bedrock) wire(ctx context.Context, cred llm.Credential) (*bedrockWire, error) {
	spec := b.client.spec
	w := &bedrockWire{base: spec.Transport, headers: spec.Headers, bearer: cred.Secret, now: spec.Now}
	if b.base != nil {
		w.prefix = b.base.EscapedPath()
	}
	var err error
	if w.region, err = b.chain.region(ctx); err != nil {
		return nil, err
	}
	if cred.Secret.IsZero() && cred.Kind == llm.KindToken {
		if w.keys, err = b.chain.keys(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// options are the SDK's options of one attempt. The SDK wants to authorize the request itself; what
// it writes is replaced on the wire.
func (b *Bedrock) options(region string) []option.RequestOption {
	opts := append(b.client.plainOptions(),
		option.WithJSONSet("anthropic_version", bedrockVersion),
		bedrock.WithConfig(aws.Config{Region: region, BearerAuthTokenProvider: bedrock.NewStaticBearerTokenProvider("replaced")}),
	)
	if b.base != nil {
		host := url.URL{Scheme: b.base.Scheme, Host: b.base.Host}
		opts = append(opts, option.WithBaseURL(host.String()))
	}
	return opts
}

// refused makes a failure of what kept the request from being sent: the network on the way to AWS's
// credentials, or else credentials that are missing or wrong.
func (b *Bedrock) refused(ctx context.Context, err error) *llm.Error {
	var answered interface{ HTTPStatusCode() int }
	ev := provider.Evidence{Err: err}
	passing := provider.TransportOf(err) != llm.TransportOther
	if errors.As(err, &answered) {
		if status := answered.HTTPStatusCode(); status == http.StatusTooManyRequests || status >= http.StatusInternalServerError {
			passing, ev.Exchange.Status = true, status
		}
	}
	e := b.client.spec.Fail(ctx, ev)
	switch {
	case ctx.Err() != nil:
		return e // ended by us: the cause tells why
	case passing:
		e.NotSent = e.Reason == llm.ReasonTimeout
	default:
		e.Reason, e.Detail, e.Scope, e.NotSent = llm.ReasonAuth, "", llm.ScopeProfile, false
		e.Rule = "bedrock-credentials"
	}
	e.Err = fmt.Errorf("nothing was asked: %w", err)
	return e
}
