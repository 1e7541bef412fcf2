package commands

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"understudy/chat"
	"understudy/session"
)

// What a conversation chose about spoken answers, as its session keeps it.
const (
	speechAlways = "always"
	speechOff    = "off"
)

// The bounds of /tts limit, in characters (spec/chat.md §4.4).
const (
	leastSpoken = 100
	mostSpoken  = 4096
)

func ttsActions() []string {
	return []string{"status", "on", "off", "chat", "provider", "limit", "audio", "latest"}
}

// tts is the control of spoken answers (spec/chat.md §4.4).
func (r *Registry) tts(ctx context.Context, c Call, args string) (Reply, error) {
	action, value := cutWord(args)
	switch action = strings.ToLower(action); action {
	case "", "status":
		return r.ttsStatus(ctx, c)
	case "on":
		return Reply{Text: "🔊 Answers are spoken, except in conversations that chose otherwise."}, r.deps.Speech.SetAuto(ctx, c, speechAlways)
	case "off":
		return Reply{Text: "🔇 Answers are not spoken, except in conversations that chose otherwise."}, r.deps.Speech.SetAuto(ctx, c, speechOff)
	case "chat":
		return r.ttsChat(ctx, c, strings.ToLower(value))
	case "provider":
		return r.ttsProvider(ctx, c, value)
	case "limit":
		n, err := strconv.Atoi(value)
		if err != nil || n < leastSpoken || n > mostSpoken {
			return Reply{}, &Refusal{fmt.Sprintf("The limit is a number of characters from %d to %d.", leastSpoken, mostSpoken)}
		}
		return Reply{Text: fmt.Sprintf("🔊 At most %d characters are spoken.", n)}, r.deps.Speech.SetLimit(ctx, c, n)
	case "audio":
		if value == "" {
			return Reply{}, &Refusal{"Write the text behind it: " + code("/tts audio <text>")}
		}
		return spoken(r.deps.Speech.Audio(ctx, c, value))
	case "latest":
		return spoken(r.deps.Speech.Latest(ctx, c))
	}
	return Reply{}, unknown("action", action, ttsActions())
}

func spoken(a chat.Attachment, err error) (Reply, error) {
	if err != nil {
		return Reply{}, err
	}
	return Reply{Text: "🔊", Media: []chat.Attachment{a}}, nil
}

func (r *Registry) ttsChat(ctx context.Context, c Call, value string) (Reply, error) {
	auto, text := "", "🔊 Here it is as everywhere: "
	switch value {
	case "on":
		auto, text = speechAlways, "🔊 Answers are spoken in this conversation."
	case "off":
		auto, text = speechOff, "🔇 Answers are not spoken in this conversation."
	case wordDefault:
	default:
		return Reply{}, unknown("choice", value, []string{"on", "off", wordDefault})
	}
	if _, err := r.ensure(ctx, c); err != nil {
		return Reply{}, err
	}
	_, err := r.deps.Sessions.Update(ctx, c.Key, func(s *session.Session) error { s.TTSAuto = auto; return nil })
	if err != nil || auto != "" {
		return Reply{Text: text}, err
	}
	st, err := r.deps.Speech.Status(ctx, c)
	return Reply{Text: text + st.Auto + "."}, err
}

func (r *Registry) ttsProvider(ctx context.Context, c Call, value string) (Reply, error) {
	if value == "" {
		st, err := r.deps.Speech.Status(ctx, c)
		if err != nil {
			return Reply{}, err
		}
		return Reply{Text: "🔊 Providers: " + listed(st.Providers) + "."}, nil
	}
	if err := r.deps.Speech.SetProvider(ctx, c, value); err != nil {
		return Reply{}, err
	}
	return Reply{Text: "🔊 " + clip(value, maxQuote) + " is asked first from now on."}, nil
}

func (r *Registry) ttsStatus(ctx context.Context, c Call) (Reply, error) {
	st, err := r.deps.Speech.Status(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	lines := []string{"🔊 Spoken answers: " + st.Auto}
	if st.Provider == "" {
		lines = append(lines, "No provider is configured: docs/speech.md says how.")
		return Reply{Text: strings.Join(lines, "\n")}, nil
	}
	provider := "Provider: " + st.Provider
	if st.Voice != "" {
		provider += ", voice " + st.Voice
	}
	lines = append(lines, fmt.Sprintf("%s · at most %d characters", provider, st.Limit))
	if !st.Last.IsZero() {
		last := "Last time: " + moment(st.Last, r.deps.Clock.Now(), r.deps.Zone(c.Agent))
		if st.LastError != "" {
			last += ", failed: " + clip(st.LastError, maxPreview)
		}
		lines = append(lines, last)
	}
	return Reply{Text: strings.Join(lines, "\n")}, nil
}

// listed joins names; "none" without any.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
