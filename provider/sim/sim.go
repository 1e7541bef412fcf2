package sim

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"understudy/internal/clock"
	"understudy/llm"
)

// Provider is the provider id of the built-in models.
const Provider = "sim"

// The ids of the built-in models.
const (
	ModelLead       = "lead"
	ModelUnderstudy = "understudy"
)

// DefaultPause is the pause before each piece of an answer: long enough to see it stream.
const DefaultPause = 25 * time.Millisecond

// Lead and Understudy return the references of the two models.
func Lead() llm.ModelRef { return llm.ModelRef{Provider: Provider, Model: ModelLead} }

// Understudy returns the reference of the model that steps in.
func Understudy() llm.ModelRef { return llm.ModelRef{Provider: Provider, Model: ModelUnderstudy} }

// Config holds what a Sim may be built with. Its zero value is fit for use.
type Config struct {
	Clock clock.Clock   // zero = real time
	Pause time.Duration // before each piece of an answer; 0 = DefaultPause, negative = none
}

// Sim is the built-in provider. It implements llm.Client, needs no credential and is safe for
// concurrent use.
type Sim struct {
	clock clock.Clock
	pause time.Duration

	mu       sync.Mutex
	troubles map[string]trouble
}

// New returns a Sim whose two models are well.
func New(cfg Config) *Sim {
	if cfg.Pause == 0 {
		cfg.Pause = DefaultPause
	}
	return &Sim{clock: cfg.Clock, pause: cfg.Pause, troubles: map[string]trouble{}}
}

// Fail makes a model fail with the response of the given reason for that long; 0 means until OK.
// The reason may be one of HelpText's, "hang" included. Any other, an unknown model or a time of
// more than a day is an error, and changes nothing.
func (s *Sim) Fail(model string, reason llm.Reason, d time.Duration) error {
	if !isModel(model) {
		return fmt.Errorf("sim has no model %q", clip(model))
	}
	if !isKind(reason) {
		return fmt.Errorf("sim cannot play the reason %q", clip(string(reason)))
	}
	if err := checkFor(d); err != nil {
		return err
	}
	t := trouble{kind: reason}
	if d > 0 {
		t.until = s.clock.Now().Add(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles[model] = t
	return nil
}

// OK ends a model's trouble. A model that is well or unknown stays so.
func (s *Sim) OK(model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.troubles, model)
}

// Run executes the words behind `/sim` and returns what to tell the person. An error is fit for
// that person too, and means that nothing changed. Whether they may is the caller's to decide: the
// command is the owner's (spec/chat.md §12, D14).
func (s *Sim) Run(args string) (string, error) {
	c, err := ParseCommand(args)
	if err != nil {
		return "", err
	}
	switch c.Verb {
	case VerbHelp:
		return HelpText(), nil
	case VerbFail:
		if err := s.Fail(c.Model, c.Kind, c.For); err != nil {
			return "", err
		}
	case VerbOK:
		if c.Model == "" {
			s.OK(ModelLead)
			s.OK(ModelUnderstudy)
		} else {
			s.OK(c.Model)
		}
	}
	return s.StatusText(), nil
}

// StatusText says how the two models are, one a line.
func (s *Sim) StatusText() string {
	now := s.clock.Now()
	lines := make([]string, 0, 2)
	for _, model := range []string{ModelLead, ModelUnderstudy} {
		line := Provider + "/" + model + ": "
		switch t := s.trouble(model, now); {
		case t.kind == "":
			line += "ok"
		case t.until.IsZero():
			line += fmt.Sprintf("%s, until `/sim %s ok`", t.kind, model)
		default:
			line += fmt.Sprintf("%s, %v left", t.kind, t.until.Sub(now).Round(time.Second))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (s *Sim) trouble(model string, now time.Time) trouble {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.troubles[model].at(now)
}

func isModel(model string) bool { return model == ModelLead || model == ModelUnderstudy }

// Stream implements llm.Client. The credential is ignored.
func (s *Sim) Stream(ctx context.Context, _ llm.Credential, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if err := s.wait(ctx, s.pause); err != nil {
			yield(llm.Event{}, err)
			return
		}
		now := s.clock.Now()
		if !isModel(req.Model.Model) {
			yield(llm.Event{}, s.judge(ctx, unknownModel(cut(req.Model.Model, 100))))
			return
		}
		switch t := s.trouble(req.Model.Model, now); t.kind {
		case "":
			s.speak(ctx, answer(req), yield)
		case hang:
			yield(llm.Event{}, s.silence(ctx))
		default:
			yield(llm.Event{}, s.judge(ctx, t.response(req.Model.Model, now)))
		}
	}
}

// speak streams r piece by piece.
func (s *Sim) speak(ctx context.Context, r reply, yield func(llm.Event, error) bool) {
	for i, piece := range r.pieces {
		if i > 0 {
			if err := s.wait(ctx, s.pause); err != nil {
				yield(llm.Event{}, err)
				return
			}
		}
		if !yield(llm.Event{Text: piece}, nil) {
			return
		}
	}
	if r.call != nil && !yield(llm.Event{ToolCall: r.call}, nil) {
		return
	}
	yield(llm.Event{Done: &llm.Done{Stop: r.stop, Usage: r.usage}}, nil)
}

// wait pauses; the end of ctx is the error of the attempt.
func (s *Sim) wait(ctx context.Context, d time.Duration) error {
	if s.clock.Sleep(ctx, d) != nil {
		return s.ended(ctx)
	}
	return nil
}

// silence waits for the end of ctx, which is somebody else's timer.
func (s *Sim) silence(ctx context.Context) error {
	_ = s.clock.Await(ctx, make(chan struct{})) // its error is ctx's cause
	return s.ended(ctx)
}
