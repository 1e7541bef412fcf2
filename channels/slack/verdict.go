package slack

import (
	"errors"
	"fmt"
	"net/http"

	"understudy/channels"
)

// meaning is what an error code of Slack means for the one who sends.
type meaning struct {
	verdict channels.Verdict
	code    string
}

// meanings are the known codes (spec/chat.md §2.7).
var meanings = map[string]meaning{
	codeRateLimited: {channels.Retry, "rate_limited"},
	"rate_limited":  {channels.Retry, "rate_limited"},
	"message_limit_exceeded": {
		channels.Refused, "workspace_full",
	},
	"service_unavailable": {channels.Retry, "server"},
	"request_timeout":     {channels.Retry, "server"},
	"team_added_to_org":   {channels.Retry, "server"},

	// something of it may have been done
	"internal_error": {channels.Unsure, "server"},
	"fatal_error":    {channels.Unsure, "server"},

	"channel_not_found":     {channels.Gone, "channel_gone"},
	"not_in_channel":        {channels.Gone, "not_in_channel"},
	"is_archived":           {channels.Gone, "channel_gone"},
	"channel_is_archived":   {channels.Gone, "channel_gone"},
	"user_not_found":        {channels.Gone, "user_gone"},
	"users_not_found":       {channels.Gone, "user_gone"},
	"user_disabled":         {channels.Gone, "user_gone"},
	"user_not_in_channel":   {channels.Gone, "user_gone"},
	"user_not_visible":      {channels.Gone, "user_gone"},
	"cannot_dm_bot":         {channels.Gone, "user_gone"},
	"messages_tab_disabled": {channels.Gone, "no_rights"},
	"restricted_action":     {channels.Gone, "no_rights"},
	"restricted_action_read_only_channel": {
		channels.Gone, "no_rights",
	},
	"restricted_action_thread_only_channel": {channels.Gone, "no_rights"},
	"restricted_action_non_threadable_channel": {
		channels.Gone, "no_rights",
	},
	"restricted_action_thread_locked": {channels.Gone, "no_rights"},
	"ekm_access_denied":               {channels.Gone, "no_rights"},
	"team_access_not_granted":         {channels.Gone, "no_rights"},
	"thread_not_found":                {channels.Gone, "thread_gone"},
	"cannot_reply_to_message":         {channels.Gone, "thread_gone"},
	"invalid_thread_ts":               {channels.Gone, "thread_gone"},

	"msg_too_long":        {channels.TooLong, "too_long"},
	"msg_blocks_too_long": {channels.TooLong, "too_long"},

	"invalid_blocks":         {channels.Markups, "markup"},
	"invalid_blocks_format":  {channels.Markups, "markup"},
	"invalid_arguments":      {channels.Markups, "markup"},
	"markdown_text_conflict": {channels.Markups, "markup"},

	"cant_update_message":            {channels.Missing, "message_gone"},
	"cant_delete_message":            {channels.Missing, "message_gone"},
	"message_not_found":              {channels.Missing, "message_gone"},
	"edit_window_closed":             {channels.Missing, "message_gone"},
	"message_not_in_streaming_state": {channels.Missing, "message_gone"},
	"message_not_owned_by_app":       {channels.Missing, "message_gone"},

	"streaming_state_conflict": {channels.Retry, "streaming"},

	codeScope:                {channels.Refused, "missing_scope"},
	"not_allowed_token_type": {channels.Refused, "unauthorized"},
	"invalid_auth":           {channels.Refused, "unauthorized"},
	"not_authed":             {channels.Refused, "unauthorized"},
	"token_revoked":          {channels.Refused, "unauthorized"},
	"token_expired":          {channels.Refused, "unauthorized"},
	"account_inactive":       {channels.Refused, "unauthorized"},

	"file_uploads_disabled":       {channels.Refused, "no_files"},
	"file_uploads_except_images":  {channels.Refused, "no_files"},
	"storage_limit_reached":       {channels.Refused, "no_files"},
	"file_upload_size_restricted": {channels.Refused, "file_too_large"},
	"posting_to_channel_denied":   {channels.Gone, "no_rights"},
	"posting_to_general_channel_denied": {
		channels.Gone, "no_rights",
	},
}

// verdict says what the failure of a call means for the one who sends. A call that can be repeated
// without harm (an edit, a deletion, a status) is never Unsure.
func (b *Bot) verdict(err error, repeatable bool) error {
	var already *channels.SendError
	if errors.As(err, &already) {
		return already
	}
	var e *callError
	if !errors.As(err, &e) {
		return &channels.SendError{Verdict: channels.Refused, Code: "internal", Err: err}
	}
	b.noteRefusal(e)
	m := e.meaning()
	if m.verdict == channels.Unsure && repeatable {
		m.verdict = channels.Retry
	}
	return &channels.SendError{Verdict: m.verdict, After: e.retryAfter, Code: m.code, Err: e}
}

func (e *callError) meaning() meaning {
	if m, ok := meanings[e.code]; ok {
		return m
	}
	switch {
	case e.code != "":
		return meaning{channels.Refused, "refused"}
	case e.status == http.StatusRequestEntityTooLarge:
		return meaning{channels.Refused, "file_too_large"}
	case e.status >= http.StatusInternalServerError && e.status != http.StatusGatewayTimeout:
		return meaning{channels.Retry, "server"}
	case e.status >= http.StatusBadRequest && e.status < http.StatusInternalServerError:
		return meaning{channels.Refused, "refused"}
	case e.status != 0: // it may have been done before the answer was spoiled
		return meaning{channels.Unsure, "server"}
	case e.written:
		return meaning{channels.Unsure, "network"}
	}
	return meaning{channels.Retry, "network"}
}

// noteRefusal tells the supervisor that the bot token is worth nothing any more, and the operator
// which scope is missing.
func (b *Bot) noteRefusal(e *callError) {
	if e.code == codeScope {
		b.log.Error("slack scope missing", "method", e.method, "needed", e.needed, "provided", e.provided)
	}
	if e.method == "response_url" {
		return
	}
	switch e.code {
	case "invalid_auth", "token_revoked", "token_expired", "account_inactive":
		select {
		case b.refused <- permanent(e, "botToken"):
		default: // it knows
		}
	}
}

// permanent returns the words for the operator if an error will not pass by itself; key is the token
// that was used.
func permanent(err error, key string) error {
	var words final
	if errors.As(err, &words) {
		return words.error
	}
	var e *callError
	if !errors.As(err, &e) {
		return nil
	}
	switch e.code {
	case "invalid_auth", "not_authed", "token_revoked", "token_expired":
		return fmt.Errorf("slack does not accept the token (%s): check %s", e.code, key)
	case "account_inactive", "user_removed_from_team":
		return fmt.Errorf("slack has switched this app off (%s): install it in the workspace again", e.code)
	case "not_allowed_token_type":
		return fmt.Errorf("slack wants another kind of token (%s): check %s", e.code, key)
	case codeScope:
		return fmt.Errorf("the token in %s lacks a scope (needs %s, has %s): add it and install the app again", key, orNothing(e.needed), orNothing(e.provided))
	}
	return nil
}

func orNothing(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
