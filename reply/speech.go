package reply

import (
	"slices"

	"understudy/chat"
)

// speechNote tells a model how to have an answer spoken. It is said only where that works.
const speechNote = "People read your answers. To have one read aloud to them as well, begin it with [[tts]], which they do not see; words between [[tts:text]] and [[/tts:text]] are heard instead of the answer, and not shown."

// speechRequest is the turn's answer as far as it is known before there is one.
func (t *turn) speechRequest() SpeechRequest {
	return SpeechRequest{Session: t.sess, Agent: t.req.Agent, To: t.req.To, Voice: t.spokenTo()}
}

// spokenTo reports whether somebody spoke instead of writing.
func (t *turn) spokenTo() bool {
	spoke := func(in *chat.Inbound) bool {
		return in != nil && slices.ContainsFunc(in.Attachments, func(a chat.Attachment) bool { return a.Voice })
	}
	return spoke(t.req.In) || slices.ContainsFunc(t.req.More, func(s Said) bool { return spoke(s.In) })
}
