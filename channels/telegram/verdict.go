package telegram

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"understudy/channels"
	"understudy/chat"
)

// refusal is a known text of a 400 and what it means (spec/chat.md §2.9).
type refusal struct {
	text    string // part of the description, lower case
	verdict channels.Verdict
	code    string
}

var refusals = []refusal{
	{"can't parse entities", channels.Markups, "markup"},
	{"can't find end tag", channels.Markups, "markup"},
	{"entities_too_long", channels.TooLong, "too_long"}, // all of them together, with their addresses
	{"entities_", channels.Markups, "markup"},
	{"entity_", channels.Markups, "markup"}, // ENTITY_BOUNDS_INVALID and its like
	{"message to edit not found", channels.Missing, "message_gone"},
	{"message can't be edited", channels.Missing, "message_gone"},
	{"there is no text in the message to edit", channels.Missing, "message_gone"},
	{"message to delete not found", channels.Missing, "message_gone"},
	{"message can't be deleted", channels.Missing, "message_gone"},
	{"message_id_invalid", channels.Missing, "message_gone"},
	{"message to react not found", channels.Missing, "message_gone"},
	{"message not found", channels.Missing, "message_gone"},
	{"reaction_invalid", channels.Refused, "reaction"},
	{"reactions_too_many", channels.Refused, "reaction"},
	{"message is too long", channels.TooLong, "too_long"},
	{"caption is too long", channels.TooLong, "too_long"},
	{"message_too_long", channels.TooLong, "too_long"},
	{"chat not found", channels.Gone, "chat_gone"},
	{"user not found", channels.Gone, "chat_gone"},
	{"peer_id_invalid", channels.Gone, "chat_gone"},
	{"have no rights to send", channels.Gone, "no_rights"},
	{"not enough rights", channels.Gone, "no_rights"},
	{"chat_write_forbidden", channels.Gone, "no_rights"},
	{"need administrator rights", channels.Gone, "no_rights"},
	{"topic_closed", channels.Gone, "topic_gone"},
	{"topic_deleted", channels.Gone, "topic_gone"},
	{"message thread not found", channels.Gone, "topic_gone"},
	{"voice_messages_forbidden", channels.Refused, "voice_forbidden"},
}

// verdict says what the failure of a call means for the one who sends. A call that can be repeated
// without harm (an edit, a deletion) is never Unsure. It returns nil when the message already is
// what it should become.
func (b *Bot) verdict(err error, to chat.Address, repeatable bool) error {
	var e *callError
	if !errors.As(err, &e) {
		return &channels.SendError{Verdict: channels.Refused, Code: "internal", Err: err}
	}
	as := func(v channels.Verdict, code string) error {
		return &channels.SendError{Verdict: v, Code: code, After: e.retryAfter, Err: err}
	}
	unsure := channels.Unsure
	if repeatable {
		unsure = channels.Retry
	}
	switch {
	case e.garbled && (e.code < 300 || e.code == http.StatusGatewayTimeout):
		return as(unsure, "server") // it may have been done before the answer was spoiled
	case e.garbled || e.code >= http.StatusInternalServerError:
		return as(channels.Retry, "server")
	case e.code == 0 && e.written:
		return as(unsure, "network")
	case e.code == 0:
		return as(channels.Retry, "network")
	case e.migrateTo != 0:
		return &channels.SendError{Verdict: channels.Moved, MovedTo: strconv.FormatInt(e.migrateTo, 10), Code: "moved", Err: err}
	case e.code == http.StatusTooManyRequests:
		return as(channels.Retry, "rate_limited")
	case e.code == http.StatusForbidden:
		return as(channels.Gone, "forbidden")
	case e.code == http.StatusUnauthorized:
		return as(channels.Refused, "unauthorized")
	case e.code == http.StatusRequestEntityTooLarge:
		return as(channels.Refused, "file_too_large")
	}
	return b.refused(e, to)
}

func (b *Bot) refused(e *callError, to chat.Address) error {
	description := strings.ToLower(e.description)
	if strings.Contains(description, "message is not modified") {
		return nil
	}
	for _, r := range refusals {
		if !strings.Contains(description, r.text) {
			continue
		}
		// In a private chat the topic is only a view; without it the message still arrives.
		if r.code == "topic_gone" && to.Kind == chat.Direct && to.Thread != "" && b.threadless.add(to.Conversation) {
			return &channels.SendError{Verdict: channels.Retry, Code: r.code, Err: e}
		}
		// Some people take no voice notes; the same as a piece of music still arrives.
		if r.code == "voice_forbidden" && b.voiceless.add(to.Conversation) {
			return &channels.SendError{Verdict: channels.Retry, Code: r.code, Err: e}
		}
		return &channels.SendError{Verdict: r.verdict, Code: r.code, Err: e}
	}
	return &channels.SendError{Verdict: channels.Refused, Code: "refused", Err: e}
}
