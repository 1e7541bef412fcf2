package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"understudy/chat"
	"understudy/commands"
	"understudy/config"
	"understudy/failover/policy"
	"understudy/internal/secret"
	"understudy/llm"
	"understudy/provider"
	"understudy/reply"
	"understudy/session"
	"understudy/stt"
	"understudy/tts"
	"understudy/tts/command"
	"understudy/tts/openai"
)

// speech is who speaks answers and who writes down voice notes.
type speech struct {
	store   *tts.Store
	speaker *tts.Speaker
	ear     atomic.Pointer[stt.Transcriber] // nil = nobody listens
	// control is the part of /tts; nil where nobody was configured to speak at the start.
	control commands.Speech
}

// openSpeech opens what speaking and listening need. Nobody is asked before there is something to say.
func (a *App) openSpeech(ctx context.Context, cfg *config.Config) (*speech, error) {
	store, err := tts.OpenStore(ctx, a.db)
	if err != nil {
		return nil, err
	}
	deps := tts.Deps{
		Engines:   map[tts.Kind]tts.Engine{tts.OpenAI: openai.Engine{Transport: a.speechTransport(), Find: a.speechKey}, tts.Command: command.Engine{Log: a.log}},
		Summarize: a.shorten, Tried: a.metrics.Speech, Log: a.log,
	}
	if f := command.FindFFmpeg(a.log); f != nil {
		deps.Convert = f.Convert
	}
	s := &speech{store: store, speaker: tts.NewSpeaker(deps)}
	if len(cfg.Voices()) > 0 {
		s.control = talker{a}
	}
	ear, err := a.listener(cfg)
	s.ear.Store(ear)
	return s, err
}

func (a *App) speechTransport() http.RoundTripper {
	if a.opts.Speech == nil {
		return http.DefaultTransport
	}
	return a.opts.Speech
}

func (a *App) listener(cfg *config.Config) (*stt.Transcriber, error) {
	return stt.New(cfg.STT, stt.Deps{Transport: a.speechTransport(), Find: a.speechKey, Log: a.log})
}

// reloadSpeech follows a new configuration.
func (a *App) reloadSpeech(ctx context.Context, cfg *config.Config) {
	ear, err := a.listener(cfg)
	if err != nil { // it was checked with the rest
		a.log.ErrorContext(ctx, "speech_not_reloaded", "error", err.Error())
		return
	}
	a.speech.ear.Store(ear)
}

// speechPolicy is how an agent's answers are spoken in a place now: the configuration, and over it what
// people chose.
func (a *App) speechPolicy(agent string, to chat.Address) tts.Config {
	return a.cfg().Speech(agent, to.Channel, to.Account).WithPrefs(a.speech.store.Current())
}

// speechRequest is an answer as package tts sees it.
func (a *App) speechRequest(q reply.SpeechRequest) tts.Request {
	return tts.Request{
		Policy: a.speechPolicy(q.Agent, q.To), Chosen: q.Session.TTSAuto, Voice: q.Voice, Class: q.Class, Text: q.Text,
	}
}

// foreseeSpeech tells how the answers of a turn will be spoken; see reply.Deps.Voice.
func (a *App) foreseeSpeech(q reply.SpeechRequest) reply.Voice {
	return reply.Voice(tts.Foresee(a.speechRequest(q)))
}

// planSpeech decides what of an answer is shown and what is said aloud; see reply.Deps.Speak.
func (a *App) planSpeech(q reply.SpeechRequest) reply.SpeechPlan {
	p := tts.Plan(a.speechRequest(q))
	if p.Speech != nil {
		p.Speech.Agent = q.Agent
	}
	return reply.SpeechPlan{Visible: p.Visible, Speech: p.Speech, AsVoice: p.AsVoice}
}

// withoutDirectives is what a model wrote, fit for a place where nobody speaks.
func withoutDirectives(text string) string {
	return cmp.Or(tts.Plan(tts.Request{Text: text}).Visible, text)
}

// speak makes the sound of an answer; see delivery.Deps.Speak.
func (a *App) speak(ctx context.Context, o chat.Outbound) (*chat.Attachment, error) {
	if o.Speech == nil {
		return nil, nil
	}
	sound, err := a.sound(ctx, *o.Speech, o.To)
	if err != nil {
		return nil, err
	}
	return &sound, nil
}

// sound speaks words for a place, and remembers for /tts status how it went.
func (a *App) sound(ctx context.Context, words chat.Speech, to chat.Address) (chat.Attachment, error) {
	sound, by, err := a.speech.speaker.Speak(ctx, a.speechPolicy(words.Agent, to), words, tts.FormatFor(to.Channel))
	note := tts.Attempt{At: a.opts.Clock.Now(), Provider: by}
	var told interface{ Public() string }
	switch {
	case errors.As(err, &told):
		note.Problem = told.Public()
	case err != nil:
		note.Problem = err.Error()
	}
	if by != "" && ctx.Err() == nil {
		if err := a.speech.store.Note(context.WithoutCancel(ctx), note); err != nil {
			a.log.WarnContext(ctx, "speech_attempt_not_stored", "error", err.Error())
		}
	}
	return sound, err
}

// errNobodyListens tells that voice notes are not written down.
var errNobodyListens = errors.New("nobody is configured to listen")

// transcribe writes down a voice note; see reply.Deps.Transcribe.
func (a *App) transcribe(ctx context.Context, file chat.Attachment) (string, error) {
	ear := a.speech.ear.Load()
	if ear == nil {
		return "", errNobodyListens
	}
	return ear.Transcribe(ctx, file)
}

// errNoKey tells that a model provider has no API key.
var errNoKey = errors.New("there is no API key for it")

// speechKey finds the key of a model provider and the address it is for; see openai.Lookup. Sign-ins
// are not used: they are for models.
func (a *App) speechKey(ctx context.Context, id string) (key secret.String, baseURL string, err error) {
	id = llm.NormalizeProvider(id)
	snap := a.current.Load()
	p, configured := snap.cfg.Models.Providers[id]
	if !configured {
		p = provider.Config{}.WithDefaults(id)
	}
	if p.BaseURL == "" && id != string(tts.OpenAI) {
		return key, "", errors.New("its address is not known")
	}
	agent := snap.cfg.DefaultAgent()
	health, err := a.health(ctx, agent)
	if err != nil {
		health = policy.Snapshot{} // the keys of the environment are still there
	}
	for _, profile := range snap.profiles(health, llm.ModelRef{Provider: id}, a.opts.Clock.Now()) {
		c, err := a.credential(ctx, snap, agent, profile)
		if err == nil && c.Kind == llm.KindAPIKey && !c.Secret.IsZero() {
			return c.Secret, p.BaseURL, nil
		}
	}
	return key, "", errNoKey
}

// credential returns what a profile authenticates with, wherever it is kept.
func (a *App) credential(ctx context.Context, snap *snapshot, agent string, id llm.ProfileID) (llm.Credential, error) {
	if p, c, ok := snap.Virtual(id.Provider()); ok && p.ID == id {
		return c, nil
	}
	if i := slices.IndexFunc(snap.settings.Keys[id.Provider()], func(c llm.Credential) bool { return c.Profile == id }); i >= 0 {
		return snap.settings.Keys[id.Provider()][i], nil
	}
	store, err := a.auth.get(ctx, agent)
	if err != nil {
		return llm.Credential{}, err
	}
	return store.Credential(ctx, id)
}

// talker implements commands.Speech.
type talker struct{ a *App }

// Status implements commands.Speech.
func (t talker) Status(ctx context.Context, c commands.Call) (commands.SpeechStatus, error) {
	prefs, err := t.a.speech.store.Prefs(ctx)
	if err != nil {
		return commands.SpeechStatus{}, err
	}
	p := t.a.speechPolicy(c.Agent, c.To)
	st := commands.SpeechStatus{Auto: p.Auto, Providers: p.Order(""), Limit: p.MaxLength, Last: prefs.Last.At, LastError: prefs.Last.Problem}
	if len(st.Providers) > 0 {
		st.Provider = st.Providers[0]
		st.Voice = p.Providers[st.Provider].Voice
	}
	slices.Sort(st.Providers)
	s, err := t.a.sessions.Get(ctx, c.Key)
	switch {
	case errors.Is(err, session.ErrNotFound):
	case err != nil:
		return st, err
	case s.TTSAuto != "":
		st.Auto = s.TTSAuto
	}
	return st, nil
}

// SetAuto implements commands.Speech.
func (t talker) SetAuto(ctx context.Context, _ commands.Call, auto string) error {
	return t.a.speech.store.SetAuto(ctx, auto)
}

// SetProvider implements commands.Speech.
func (t talker) SetProvider(ctx context.Context, c commands.Call, id string) error {
	known := t.a.speechPolicy(c.Agent, c.To).Order("")
	if !slices.Contains(known, id) {
		slices.Sort(known)
		return &commands.Refusal{Text: "There is no such provider. There is: " + strings.Join(known, ", ") + "."}
	}
	return t.a.speech.store.SetProvider(ctx, id)
}

// SetLimit implements commands.Speech.
func (t talker) SetLimit(ctx context.Context, _ commands.Call, characters int) error {
	return t.a.speech.store.SetLimit(ctx, characters)
}

// Audio implements commands.Speech.
func (t talker) Audio(ctx context.Context, c commands.Call, text string) (chat.Attachment, error) {
	words := tts.Words(t.a.speechPolicy(c.Agent, c.To), text)
	if words == nil {
		return chat.Attachment{}, &commands.Refusal{Text: "There is nothing in it that could be spoken."}
	}
	words.Agent = c.Agent
	sound, err := t.a.sound(ctx, *words, c.To)
	if errors.Is(err, tts.ErrNobody) {
		return sound, &commands.Refusal{Text: "Nobody is configured to speak."}
	}
	return sound, err
}

// latestWithin is how far back the last answer is looked for, in entries of the transcript.
const latestWithin = 50

// Latest implements commands.Speech.
func (t talker) Latest(ctx context.Context, c commands.Call) (chat.Attachment, error) {
	text, err := t.a.lastAnswer(ctx, c.Key)
	if err != nil {
		return chat.Attachment{}, err
	}
	if text == "" {
		return chat.Attachment{}, &commands.Refusal{Text: "There is no answer yet that could be spoken."}
	}
	spoken, err := t.a.speech.store.WasSpoken(ctx, c.Key, text)
	switch {
	case err != nil:
		return chat.Attachment{}, err
	case spoken:
		return chat.Attachment{}, &commands.Refusal{Text: "The last answer was spoken already."}
	}
	sound, err := t.Audio(ctx, c, text)
	if err == nil {
		err = t.a.speech.store.MarkSpoken(ctx, c.Key, text, t.a.opts.Clock.Now())
	}
	return sound, err
}

// lastAnswer is the newest thing a model said in a session, "" = nothing.
func (a *App) lastAnswer(ctx context.Context, key string) (string, error) {
	s, err := a.sessions.Get(ctx, key)
	if errors.Is(err, session.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	entries, err := a.sessions.Page(ctx, s.ID, 0, latestWithin)
	if err != nil {
		return "", fmt.Errorf("the last answer: %w", err)
	}
	for _, e := range slices.Backward(entries) {
		if e.Kind != session.KindMessage || e.Message.Role != llm.RoleAssistant {
			continue
		}
		if text := strings.TrimSpace(e.Message.PlainText()); text != "" {
			return text, nil
		}
	}
	return "", nil
}
