package openai

import (
	"errors"
	"strings"

	"github.com/openai/openai-go/v3/option"

	"understudy/llm"
	"understudy/provider"
)

var errNoResponse = errors.New("the SDK returned no response")

// route is where an attempt goes. OAuth credentials of OpenAI go to the ChatGPT backend, which
// speaks the Responses API only, needs instructions and takes no limit of tokens; the provider,
// and so the transcript, stays the same (spec/failover.md §5.3).
type route struct {
	api          provider.API
	baseURL      string
	subscription bool
	session      string
}

// originator tells the ChatGPT backend which program is asking.
const originator = "understudy"

func (c *client) route(cred llm.Credential, req llm.Request) route {
	if cred.Kind == llm.KindOAuth && c.spec.Quirks.SubscriptionURL != "" {
		return route{
			api: provider.OpenAIResponses, baseURL: c.spec.Quirks.SubscriptionURL,
			subscription: true, session: cacheKey(req),
		}
	}
	return route{api: c.spec.API, baseURL: c.spec.BaseURL}
}

// options are the SDK's options of one attempt.
func (r route) options(spec provider.Spec, cred llm.Credential) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithBaseURL(strings.TrimRight(r.baseURL, "/") + "/"),
		option.WithMaxRetries(0),
		option.WithHeader("Accept", "text/event-stream, application/json"),
		option.WithHeader("User-Agent", originator),
	}
	if !r.subscription { // configured headers belong to the configured host
		for name, value := range spec.Headers {
			opts = append(opts, option.WithHeader(name, value.Reveal()))
		}
	}
	switch {
	case cred.Kind == llm.KindNone || cred.Secret.IsZero():
	case cred.Kind == llm.KindAPIKey && spec.Quirks.KeyHeader != "":
		opts = append(opts, option.WithHeader(spec.Quirks.KeyHeader, cred.Secret.Reveal()))
	default:
		opts = append(opts, option.WithHeader("Authorization", "Bearer "+cred.Secret.Reveal()))
	}
	if r.subscription {
		opts = append(opts,
			option.WithHeader("originator", originator),
			option.WithHeader("OpenAI-Beta", "responses=experimental"))
		if cred.AccountID != "" {
			opts = append(opts, option.WithHeader("chatgpt-account-id", cred.AccountID))
		}
		if r.session != "" {
			opts = append(opts, option.WithHeader("session_id", r.session))
		}
	}
	return opts
}

// maxCacheKey is what the API takes.
const maxCacheKey = 64

// cacheKey returns the id of the conversation, if the request may carry state at all.
func cacheKey(req llm.Request) string {
	if req.Stateless || len(req.CacheKey) > maxCacheKey {
		return ""
	}
	return req.CacheKey
}
