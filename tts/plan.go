package tts

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"understudy/chat"
)

const (
	leastVisible   = 10     // characters; less is not worth a sound
	longestSummary = 16_000 // characters of an answer that a summary is made of
)

// Request is an answer that could be spoken.
type Request struct {
	Policy Config // complete: Merge(…).WithDefaults().WithPrefs(…)
	// Chosen is what the conversation chose for itself, one of the values of Config.Auto; "" = nothing.
	Chosen string
	// Voice tells that a message it answers was a voice note.
	Voice bool
	Class chat.Class
	// Text is the model's words, directives included; no prefix, no footer, nothing of ours.
	Text string
}

// Prospect is what is known of the speech of an answer before there is an answer.
type Prospect struct {
	// Tagged tells that it is spoken if the model asks for that, which the model has to know.
	Tagged bool
	// Certain tells that it is spoken whatever it says, unless there is nothing in it to be spoken, and
	// that its text may wait for the sound (Config.Mode).
	Certain bool
}

// Foresee tells how an answer to q, of which class and text are not known yet, will be spoken. It is pure.
func Foresee(q Request) Prospect {
	if len(q.Policy.Order("")) == 0 {
		return Prospect{}
	}
	return Prospect{
		Tagged:  q.auto() == Tagged && q.Policy.obeys(),
		Certain: q.Policy.Mode == modeFinal && wanted(q, false),
	}
}

// Planned is what becomes of an answer.
type Planned struct {
	Visible string       // without directives
	Speech  *chat.Speech // nil = it is not spoken
	// AsVoice asks that sound which is attached to the answer be shown as a voice note.
	AsVoice bool
}

// Plan decides what of an answer is shown and what is said aloud (spec/chat.md §4.2). It is pure. Text
// that may not become speech, whatever it says, is that of a class which is not Speakable.
func Plan(q Request) Planned {
	visible, found := strip(q.Text)
	out := Planned{Visible: strings.TrimSpace(visible), AsVoice: found.voice}
	if !q.Class.Speakable() || isToken(out.Visible) {
		return out
	}
	p := q.Policy
	if !p.obeys() {
		found = &directives{}
	}
	if !wanted(q, found.tagged) || len(p.Order("")) == 0 {
		return out
	}
	text := speakable(found.spoken.String())
	if text == "" {
		if utf8.RuneCountInString(out.Visible) < leastVisible {
			return out
		}
		text = speakable(out.Visible)
	}
	if p.Summarize != nil && *p.Summarize {
		text = shorten(text, longestSummary)
	} else {
		text = shorten(text, p.limit())
	}
	if text == "" {
		return out
	}
	out.Speech = &chat.Speech{Text: text, Provider: p.Provider}
	steer(out.Speech, found.options, p)
	return out
}

// steer lets a directive choose how something is spoken. A voice belongs to a provider, so a directive
// that names a provider it may not choose does not choose its voice either.
func steer(s *chat.Speech, options map[string]string, p Config) {
	options = maps.Clone(options)
	if named, ok := options[optionProvider]; ok {
		delete(options, optionProvider)
		allowed := p.ModelOverrides.AllowProvider != nil && *p.ModelOverrides.AllowProvider
		switch first := p.Order(""); {
		case allowed && slices.Contains(first, named):
			s.Provider = named
		case named != first[0]:
			delete(options, OptionVoice)
		}
	}
	if len(options) > 0 {
		s.Options = options
	}
}

// obeys reports whether the directives of a model count.
func (c Config) obeys() bool { return c.ModelOverrides.Enabled == nil || *c.ModelOverrides.Enabled }

// auto is when answers are spoken. What the conversation chose counts more than the policy.
func (q Request) auto() string {
	if q.Chosen != "" {
		return q.Chosen
	}
	return q.Policy.Auto
}

// wanted reports whether an answer is to be spoken at all.
func wanted(q Request, tagged bool) bool {
	switch q.auto() {
	case Always:
		return true
	case Inbound:
		return q.Voice
	case Tagged:
		return tagged
	}
	return false
}

// isToken reports whether a text is a word between the model and its runner.
func isToken(visible string) bool {
	return strings.EqualFold(visible, "NO_REPLY") || strings.EqualFold(visible, "HEARTBEAT_OK")
}
