package providertest

import (
	"iter"
	"testing"
	"testing/synctest"

	emulator "understudy/internal/emulate/llm"
	"understudy/internal/secret"
	"understudy/llm"
	"understudy/provider"
)

// Suite says what is tested.
type Suite struct {
	// New makes the client. The suite sets every field of the Spec but those of Spec below.
	New provider.Factory
	// Spec is the provider under test: ID, API, BaseURL, Quirks. The emulator answers for any host.
	Spec provider.Spec
	// Model is the model id that requests name; "" = "m1".
	Model string
	// NoReasoning: the API carries no thought.
	NoReasoning bool
}

// The secrets of the suite: no error may hold them.
const (
	keyOne = "sk-test-one-000000000000"
	keyTwo = "sk-test-two-000000000000"
)

// overloaded is an in-stream error that every API understands.
const overloaded = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`

// Run runs all behaviours.
func Run(t *testing.T, s Suite) {
	if s.Model == "" {
		s.Model = "m1"
	}
	t.Run("answers", s.answers)
	t.Run("requests", s.requests)
	t.Run("pictures", s.pictures)
	t.Run("statuses", s.statuses)
	t.Run("broken streams", s.brokenStreams)
	t.Run("not an answer", s.notAnAnswer)
	t.Run("silence", s.silence)
	t.Run("leaving", s.leaving)
	t.Run("no connection", s.noConnection)
	t.Run("transcripts", s.transcripts)
}

// world is one emulator with one client, inside a bubble.
type world struct {
	*testing.T
	suite  Suite
	srv    *emulator.Server
	client llm.Client
}

// bubble runs f in a bubble of its own, where waiting costs nothing.
func (s Suite) bubble(t *testing.T, name string, f func(w world)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := emulator.New()
			defer srv.Close()
			spec := s.Spec
			spec.Transport = srv.Transport()
			client, err := s.New(spec.WithDefaults())
			if err != nil {
				t.Fatal(err)
			}
			f(world{t, s, srv, client})
		})
	})
}

func (w world) request(text string) llm.Request {
	return llm.Request{
		Model: llm.ModelRef{Provider: w.suite.Spec.ID, Model: w.suite.Model}, System: "You are brief.",
		Messages: []llm.Message{llm.Text(llm.RoleUser, text)}, MaxTokens: 1000,
	}
}

// ask makes one attempt with the first key.
func (w world) ask(req llm.Request) Answer {
	return Collect(w.client.Stream(w.Context(), w.suite.credential(keyOne), req))
}

func (s Suite) credential(key string) llm.Credential {
	return llm.Credential{Profile: llm.ProfileID(s.Spec.ID + ":p1"), Kind: llm.KindAPIKey, Secret: secret.New(key)}
}

// Answer is what a stream yielded.
type Answer struct {
	Text      string
	Reasoning []llm.Reasoning
	Calls     []llm.ToolCall
	Progress  int
	Done      *llm.Done
	Err       *llm.Error
	// Fault tells how the sequence broke the contract of llm.Client; "" = it did not.
	Fault string
}

// Message returns the answer as the next request's transcript holds it.
func (a Answer) Message() llm.Message {
	m := llm.Message{Role: llm.RoleAssistant}
	for i := range a.Reasoning {
		m.Parts = append(m.Parts, llm.Part{Reasoning: &a.Reasoning[i]})
	}
	if a.Text != "" {
		m.Parts = append(m.Parts, llm.Part{Text: a.Text})
	}
	for i := range a.Calls {
		m.Parts = append(m.Parts, llm.Part{ToolCall: &a.Calls[i]})
	}
	return m
}

// Collect reads a stream to its end and watches the contract of llm.Client.
func Collect(seq iter.Seq2[llm.Event, error]) Answer {
	var a Answer
	ended := false
	for ev, err := range seq {
		if ended {
			a.Fault = "something came after the end"
		}
		if err != nil {
			ended = true
			e, ok := err.(*llm.Error) //nolint:errorlint // the contract is the type itself
			if !ok {
				a.Fault = "the error is not an *llm.Error: " + err.Error()
				e = llm.AsError(err)
			}
			a.Err = e
			continue
		}
		switch {
		case ev.Done != nil:
			a.Done, ended = ev.Done, true
		case ev.Reasoning != nil:
			a.Reasoning = append(a.Reasoning, *ev.Reasoning)
		case ev.ToolCall != nil:
			a.Calls = append(a.Calls, *ev.ToolCall)
		case ev.Progress:
			a.Progress++
		default:
			a.Text += ev.Text
		}
	}
	if a.Done == nil && a.Err == nil {
		a.Fault = "the stream ended without Done or an error"
	}
	return a
}

// good fails the test unless a is a complete answer.
func (w world) good(a Answer) {
	w.Helper()
	if a.Fault != "" || a.Err != nil || a.Done == nil {
		w.Fatalf("no answer: fault %q, error %v", a.Fault, a.Err)
	}
}
