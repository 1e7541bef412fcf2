package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"understudy/config"
	"understudy/failover"
	"understudy/failover/classify"
	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/internal/secret"
	"understudy/llm"
	"understudy/provider"
)

// world is the model APIs of a scenario: an llm.Client for every provider. What it answers goes
// through the product's own classification.
type world struct {
	clock clock.Clock
	rules []*rule

	mu    sync.Mutex
	calls int
	tools map[string]*rule // id of a tool call → the rule that made it
}

// Stream implements llm.Client.
func (w *world) Stream(ctx context.Context, cred llm.Credential, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		a, id := w.pick(req, cred.Profile)
		if err := w.clock.Sleep(ctx, a.latency); err != nil {
			yield(llm.Event{}, &llm.Error{Failure: llm.Failure{Reason: llm.ReasonAborted}, Err: err})
			return
		}
		w.play(ctx, req, a, id, yield)
	}
}

// pick returns the answer of the first rule that matches, judged when the request starts, and the
// id of the tool call it may be. A rule that answered with a tool call is done for this turn.
func (w *world) pick(req llm.Request, profile llm.ProfileID) (answer, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	id := fmt.Sprintf("call_%d", w.calls)
	now, done := w.clock.Now(), w.called(req.Messages)
	for _, r := range w.rules {
		if done[r] || !r.matches(req.Model, profile, now) {
			continue
		}
		r.used++
		if r.answer.tool != "" {
			w.tools[id] = r
		}
		return r.answer, id
	}
	ok := "ok"
	return answer{text: &ok}, id
}

// called returns the rules whose tool calls were made since the user last spoke.
func (w *world) called(messages []llm.Message) map[*rule]bool {
	done := map[*rule]bool{}
	for i := len(messages) - 1; i >= 0 && messages[i].Role != llm.RoleUser; i-- {
		for _, part := range messages[i].Parts {
			if part.ToolCall != nil {
				done[w.tools[part.ToolCall.ID]] = true
			}
		}
	}
	return done
}

// play yields what an answer is made of.
func (w *world) play(ctx context.Context, req llm.Request, a answer, id string, yield func(llm.Event, error) bool) {
	done := llm.Event{Done: &llm.Done{Stop: llm.StopEnd, Usage: llm.Usage{Input: 1, Output: 1}}}
	switch {
	case a.hang:
		err := w.clock.Await(ctx, nil)
		yield(llm.Event{}, &llm.Error{Failure: llm.Failure{Reason: llm.ReasonAborted}, Err: err})
	case a.failure != "":
		yield(llm.Event{}, w.broken(req, a.failure))
	case a.cut != nil:
		if *a.cut != "" && !yield(llm.Event{Text: *a.cut}, nil) {
			return
		}
		yield(llm.Event{}, w.failed(classify.Input{
			Provider: req.Model.Provider, API: w.api(req), Status: 200, Stream: true, Position: classify.PositionMid,
			Transport: llm.TransportEOF, Message: "unexpected EOF", ErrorType: "io.ErrUnexpectedEOF",
		}))
	case a.empty:
		yield(done, nil)
	case a.tool != "":
		call := &llm.ToolCall{ID: id, Name: a.tool, Input: json.RawMessage("{}")}
		if yield(llm.Event{ToolCall: call}, nil) {
			done.Done.Stop = llm.StopToolUse
			yield(done, nil)
		}
	case a.status != 0:
		w.respond(req, a, done, yield)
	default:
		if yield(llm.Event{Text: *a.text}, nil) {
			yield(done, nil)
		}
	}
}

// respond classifies an HTTP answer; one that is no failure counts as "ok".
func (w *world) respond(req llm.Request, a answer, done llm.Event, yield func(llm.Event, error) bool) {
	f, failed := classify.Classify(classify.Input{
		Provider: req.Model.Provider, API: w.api(req), Status: a.status, Header: a.headers, Body: a.body, Now: w.clock.Now(),
	})
	if failed {
		yield(llm.Event{}, &llm.Error{Failure: f, Err: fmt.Errorf("status %d", a.status)})
		return
	}
	if yield(llm.Event{Text: "ok"}, nil) {
		yield(done, nil)
	}
}

// broken is a failure below HTTP, told by its text.
func (w *world) broken(req llm.Request, text string) *llm.Error {
	return w.failed(classify.Input{
		Provider: req.Model.Provider, API: classify.APITransport,
		Transport: transportOf(text), Message: text, ErrorType: text,
	})
}

func (w *world) failed(in classify.Input) *llm.Error {
	in.Now = w.clock.Now()
	f, failed := classify.Classify(in)
	if !failed {
		f = llm.Failure{Reason: llm.ReasonUnclassified}
	}
	return &llm.Error{Failure: f, Err: errors.New(in.Message)}
}

// transportOf reads the text of a transport error as a person writes it in a scenario: the name of
// a Go error, or its message.
func transportOf(text string) llm.Transport {
	if t := classify.TransportOf(text, text); t != llm.TransportOther {
		return t
	}
	low := strings.ToLower(text)
	for _, x := range []struct {
		word string
		t    llm.Transport
	}{
		{"refused", llm.TransportRefused},
		{"reset", llm.TransportReset},
		{"broken pipe", llm.TransportReset},
		{"no such host", llm.TransportDNS},
		{"dns", llm.TransportDNS},
		{"certificate", llm.TransportTLS},
		{"tls", llm.TransportTLS},
		{"eof", llm.TransportEOF},
		{"goaway", llm.TransportGoAway},
		{"deadline", llm.TransportDeadline},
		{"timeout", llm.TransportDeadline},
		{"timed out", llm.TransportDeadline},
		{"unreachable", llm.TransportDial},
	} {
		if strings.Contains(low, x.word) {
			return x.t
		}
	}
	return llm.TransportOther
}

// api returns the kind of API that a provider of this name speaks.
func (w *world) api(req llm.Request) string {
	if b, ok := provider.Builtin(req.Model.Provider); ok {
		return string(b.API)
	}
	return classify.APIOpenAIChat
}

// models answers what failover asks about models, from the scenario's configuration and the
// catalogue.
type models struct {
	world    *world
	config   *config.Config
	registry *provider.Registry
	stored   map[string]bool // providers with a stored profile
}

func newModels(w *world, cfg *config.Config, stored map[string]bool) (*models, error) {
	factory := func(provider.Spec) (llm.Client, error) { return w, nil }
	registry, err := provider.New(cfg.Models.Providers, provider.Deps{Factories: map[provider.API]provider.Factory{
		provider.OpenAIChat: factory, provider.OpenAIResponses: factory, provider.AnthropicMessages: factory, provider.Bedrock: factory, provider.Simulated: factory,
	}})
	if err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	return &models{world: w, config: cfg, registry: registry, stored: stored}, nil
}

// Client implements failover.Models: every provider named anywhere exists.
func (m *models) Client(string) (llm.Client, error) { return m.world, nil }

// Info implements failover.Models.
func (m *models) Info(ref llm.ModelRef) failover.ModelInfo {
	info := m.registry.Model(ref)
	return failover.ModelInfo{Known: info.Known, Images: info.Images, ContextWindow: info.ContextWindow}
}

// IdleTimeout implements failover.Models. A provider that is only a name in the scenario stands for
// one out in the world, not for a local one.
func (m *models) IdleTimeout(id string) time.Duration {
	if p := m.config.Models.Providers[id]; p.BaseURL == "" && p.TimeoutSeconds == nil {
		if def, ok := provider.Builtin(id); !ok || def.BaseURL == "" {
			return m.registry.IdleTimeout("")
		}
	}
	return m.registry.IdleTimeout(id)
}

// Virtual implements failover.Models: a provider without a stored profile runs on one key of the
// environment.
func (m *models) Virtual(id string) (policy.Profile, llm.Credential, bool) {
	if m.stored[id] {
		return policy.Profile{}, llm.Credential{}, false
	}
	profile := llm.ProfileID(id + ":env")
	return policy.Profile{ID: profile, Kind: llm.KindAPIKey, HasSecret: true},
		llm.Credential{Profile: profile, Kind: llm.KindAPIKey, Secret: secret.New("simulated")}, true
}
