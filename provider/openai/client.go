// Package openai speaks OpenAI's two APIs, Chat Completions and Responses, to OpenAI itself, to
// ChatGPT subscriptions and to every compatible host: Gemini, Ollama, OpenRouter and the rest
// differ by provider.Quirks only.
//
// Requests are built and sent by the official SDK through its service constructors, which read no
// environment. Responses are read here: the SDK takes a chunk with "error": null for a failure, a
// stream that ends early for a success and a JSON body for an empty one.
package openai

import (
	"context"
	"fmt"
	"iter"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"understudy/llm"
	"understudy/provider"
)

// client is one provider. It holds no credential; everything it keeps is constant.
type client struct {
	spec      provider.Spec
	chat      sdk.ChatCompletionService
	responses responses.ResponseService
}

// New returns the client for spec, whose API must be OpenAIChat or OpenAIResponses. It is a
// provider.Factory.
func New(spec provider.Spec) (llm.Client, error) {
	spec = spec.WithDefaults()
	if spec.API != provider.OpenAIChat && spec.API != provider.OpenAIResponses {
		return nil, fmt.Errorf("package openai does not speak %q", spec.API)
	}
	if spec.BaseURL == "" {
		return nil, fmt.Errorf("no base URL")
	}
	return &client{spec: spec, chat: sdk.NewChatCompletionService(), responses: responses.NewResponseService()}, nil
}

// Stream implements llm.Client.
func (c *client) Stream(ctx context.Context, cred llm.Credential, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		rec := provider.NewRecorder(c.spec.Transport)
		res, dec, err := c.send(ctx, rec, cred, req)
		a := &attempt{ctx: ctx, spec: c.spec, rec: rec, dec: dec, yield: yield}
		if err != nil {
			a.fail(provider.Evidence{Err: err})
			return
		}
		a.read(res)
	}
}

// send makes the one request of an attempt and returns its response, whatever its status, and the
// decoder for its body.
func (c *client) send(ctx context.Context, rec *provider.Recorder, cred llm.Credential, req llm.Request) (*http.Response, decoder, error) {
	var res *http.Response
	route := c.route(cred, req)
	opts := append(route.options(c.spec, cred),
		option.WithHTTPClient(rec.HTTPClient()),
		option.WithResponseBodyInto(&res),
		option.WithJSONSet("stream", true),
	)
	var (
		dec decoder
		err error
	)
	if route.api == provider.OpenAIResponses {
		dec = newResponsesDecoder(req.Model)
		_, err = c.responses.New(ctx, c.responsesRequest(req, route), opts...)
	} else {
		dec = newChatDecoder(req.Model)
		_, err = c.chat.New(ctx, c.chatRequest(req), opts...)
	}
	if rec.Exchange().Status != 0 && res != nil {
		return res, dec, nil // the SDK turned a status into an error; the body is in its buffer
	}
	if err == nil {
		err = errNoResponse
	}
	return nil, dec, err
}
