package tts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"understudy/chat"
)

// LargestSound bounds what a provider may answer with, in bytes.
const LargestSound = 50 << 20

// summaryTimeout is how long a summary may take before a text is cut instead.
const summaryTimeout = 20 * time.Second

// Job is one thing for an Engine to say.
type Job struct {
	ID       string   // of the provider, for the key that belongs to it
	Provider Provider // complete
	Text     string   // plain words, no longer than Config.MaxTextLength
	Format   Format   // that is wished for; another one may come
	// Voice, Speed and Instructions are the provider's own or those of a directive.
	Voice, Instructions string
	Speed               float64
}

// Engine makes sound in one way. It makes one attempt, ends with its context and returns at most
// LargestSound bytes. Its errors name no key, address or text.
type Engine interface {
	Speak(ctx context.Context, j Job) ([]byte, error)
}

// Deps are what a Speaker works with.
type Deps struct {
	Engines map[Kind]Engine
	// Convert changes the format of sound; nil, or an error = it stays as it is.
	Convert func(ctx context.Context, data []byte, from, to Format) ([]byte, error)
	// Summarize writes a shorter text that says the same. nil, or an error = long texts are cut.
	Summarize func(ctx context.Context, s Summary) (string, error)
	// Tried is told of every attempt: outcome is ok, failed, timeout or cancelled. nil = nobody.
	Tried func(provider, outcome string)
	Log   *slog.Logger
}

// Summary is a text that is to be written shorter.
type Summary struct {
	Agent string // whose answer it is; "" = the default agent's
	Model string // Config.SummaryModel; "" = the agent's
	Text  string
	Limit int // characters
}

// Speaker turns speech into sound. It keeps nothing between calls and is safe for concurrent use.
type Speaker struct{ deps Deps }

// NewSpeaker returns a Speaker.
func NewSpeaker(deps Deps) *Speaker {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Tried == nil {
		deps.Tried = func(string, string) {}
	}
	return &Speaker{deps}
}

// ErrNobody tells that no provider is configured.
var ErrNobody = errors.New("nobody is configured to speak")

// Failure is why there is no sound: what every provider that was asked ended with.
type Failure struct{ Attempts []error }

// Error names the providers and what went wrong.
func (f *Failure) Error() string { return errors.Join(f.Attempts...).Error() }

// Unwrap returns the attempts.
func (f *Failure) Unwrap() []error { return f.Attempts }

// Public tells a person no more than that.
func (f *Failure) Public() string {
	var all []string
	for _, e := range f.Attempts {
		all = append(all, e.Error())
	}
	return strings.Join(all, "; ")
}

// errOverdue ends an attempt that takes too long.
var errOverdue = errors.New("took too long")

// Speak makes sound of s under a complete policy: the provider s names is asked first, then the others.
// Who made it is returned also when it did not work out (the one asked last). The error is ErrNobody,
// the context's cause or a *Failure; then the answer is text.
func (s *Speaker) Speak(ctx context.Context, policy Config, what chat.Speech, target Format) (sound chat.Attachment, by string, err error) {
	order := policy.Order(what.Provider)
	text := s.fitting(ctx, policy, what)
	if len(order) == 0 || text == "" {
		return chat.Attachment{}, "", ErrNobody
	}
	var failure Failure
	for i, id := range order {
		j := job(id, policy.Providers[id], text, target)
		if i == 0 { // a directive was written for the provider that is asked first
			j.steer(what.Options)
		}
		data, err := s.attempt(ctx, j)
		by = id
		if err == nil {
			return s.finish(ctx, data, target), by, nil
		}
		if ctx.Err() != nil {
			s.deps.Tried(id, "cancelled")
			return chat.Attachment{}, by, context.Cause(ctx)
		}
		s.deps.Tried(id, outcome(err))
		s.deps.Log.Warn("speech_failed", "provider", id, "error", err.Error())
		failure.Attempts = append(failure.Attempts, fmt.Errorf("%s: %w", id, err))
	}
	return chat.Attachment{}, by, &failure
}

func outcome(err error) string {
	if errors.Is(err, errOverdue) {
		return "timeout"
	}
	return "failed"
}

func job(id string, p Provider, text string, target Format) Job {
	return Job{ID: id, Provider: p, Text: text, Format: target, Voice: p.Voice, Speed: p.Speed, Instructions: p.Instructions}
}

// steer applies the options of a directive. They may come from a database, so they are checked again.
func (j *Job) steer(options map[string]string) {
	for key, value := range options {
		value, ok := checkedOption(key, value)
		if !ok {
			continue
		}
		switch key {
		case OptionVoice:
			j.Voice = value
		case OptionInstructions:
			j.Instructions = value
		case OptionSpeed:
			_, _ = fmt.Sscan(value, &j.Speed) // was checked
		}
	}
}

// attempt asks one provider and looks at what came.
func (s *Speaker) attempt(ctx context.Context, j Job) ([]byte, error) {
	engine := s.deps.Engines[j.Provider.Kind()]
	if engine == nil {
		return nil, errors.New("nobody knows how to talk to it")
	}
	call, cancel := context.WithTimeoutCause(ctx, time.Duration(j.Provider.TimeoutMs)*time.Millisecond, errOverdue)
	defer cancel()
	data, err := engine.Speak(call, j)
	switch {
	case err != nil && errors.Is(context.Cause(call), errOverdue):
		return nil, errOverdue
	case err != nil:
		return nil, err
	case Detect(data) == "":
		return nil, fmt.Errorf("what it made is no sound (%d bytes)", len(data))
	}
	s.deps.Tried(j.ID, "ok")
	return data, nil
}

// finish makes an attachment of sound, in the format that is wished for where that can be had.
func (s *Speaker) finish(ctx context.Context, data []byte, target Format) chat.Attachment {
	is := Detect(data)
	if is != target && s.deps.Convert != nil {
		converted, err := s.deps.Convert(ctx, data, is, target)
		switch now := Detect(converted); {
		case err != nil:
			s.deps.Log.Info("speech_not_converted", "from", string(is), "to", string(target), "error", err.Error())
		case now != "":
			data, is = converted, now
		}
	}
	return chat.Attachment{
		Name: "answer" + is.extension(), MediaType: is.MediaType(), Size: int64(len(data)), Data: data,
		Voice: target == Opus && (is == Opus || is == MP3 || is == M4A), // what players of voice notes know
	}
}

// fitting makes what is said as short as the policy wants it.
func (s *Speaker) fitting(ctx context.Context, policy Config, what chat.Speech) string {
	text, limit := what.Text, policy.limit()
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	if policy.Summarize != nil && *policy.Summarize && s.deps.Summarize != nil {
		call, cancel := context.WithTimeoutCause(ctx, summaryTimeout, errOverdue)
		defer cancel()
		summary, err := s.deps.Summarize(call, Summary{Agent: what.Agent, Model: policy.SummaryModel, Text: text, Limit: limit})
		if err == nil {
			visible, _ := strip(summary)
			if summary = speakable(visible); summary != "" {
				return shorten(summary, limit)
			}
		} else {
			s.deps.Log.Info("speech_not_summarised", "error", err.Error())
		}
	}
	return shorten(text, limit)
}

// Words returns how a text of the model or of a person is said aloud, whatever the policy says of when
// answers are spoken: for /tts audio and /tts latest. nil = there is nothing to say.
func Words(policy Config, text string) *chat.Speech {
	visible, _ := strip(text)
	words := speakable(visible)
	if words == "" {
		return nil
	}
	return &chat.Speech{Text: shorten(words, longestSummary), Provider: policy.Provider}
}
