package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/channels"
	"understudy/chat"
)

// typingTTL is how long Telegram shows a chat action (spec/chat.md §2.9).
const typingTTL = 5 * time.Second

// Send implements channels.Adapter. Without media it is one call. A text is the caption of a single
// file if it fits, else it follows the files; when something fails behind the first of several
// calls, the receipt names what was sent and the verdict is Unsure.
//
// A piece whose Text is empty or equal to its Plain is sent without a parse mode.
func (b *Bot) Send(ctx context.Context, p channels.Piece) (channels.Receipt, error) {
	if len(p.Media) == 0 {
		id, err := b.sendText(ctx, p)
		return receipt(id), err
	}
	caption := len(p.Media) == 1 && visible(p) <= longestCaption
	var sent channels.Receipt
	fail := func(err error) (channels.Receipt, error) {
		if len(sent.IDs) > 0 {
			err = &channels.SendError{Verdict: channels.Unsure, Code: "partly_sent", Err: err}
		}
		return sent, err
	}
	for i, m := range p.Media {
		part := p
		part.Buttons = nil
		if !caption {
			part.Text, part.Plain = "", ""
		} else {
			part.Buttons = p.Buttons
		}
		if i > 0 {
			part.ReplyTo = ""
		}
		id, err := b.sendFile(ctx, part, m)
		if err != nil {
			return fail(err)
		}
		sent.IDs = append(sent.IDs, id)
	}
	if !caption && p.Text+p.Plain != "" {
		p.ReplyTo = ""
		id, err := b.sendText(ctx, p)
		if err != nil {
			return fail(err)
		}
		sent.IDs = append(sent.IDs, id)
	}
	return sent, nil
}

// visible is the length of what a piece shows, in UTF-16 units, at most too large.
func visible(p channels.Piece) int {
	shown := p.Plain
	if shown == "" {
		shown = p.Text
	}
	return len(utf16.Encode([]rune(shown)))
}

func receipt(id string) channels.Receipt {
	if id == "" {
		return channels.Receipt{}
	}
	return channels.Receipt{IDs: []string{id}}
}

// text sets the text of a message or caption.
func text(params tgbotapi.Params, key string, p channels.Piece) {
	if p.Text == "" || p.Text == p.Plain {
		params.AddNonEmpty(key, p.Plain)
		return
	}
	params[key] = p.Text
	params["parse_mode"] = "HTML"
}

func (b *Bot) sendText(ctx context.Context, p channels.Piece) (string, error) {
	params, err := b.params(ctx, p)
	if err != nil {
		return "", err
	}
	text(params, "text", p)
	if !*b.cfg.LinkPreview {
		params["link_preview_options"] = `{"is_disabled":true}`
	}
	return b.send(ctx, p.To, b.api.calls, "sendMessage", params)
}

// params are the parameters all sends have in common.
func (b *Bot) params(ctx context.Context, p channels.Piece) (tgbotapi.Params, error) {
	params := tgbotapi.Params{"chat_id": p.To.Conversation}
	if p.To.Thread != generalTopic && !b.threadless.has(p.To.Conversation) { // General has to be left out
		params.AddNonEmpty("message_thread_id", p.To.Thread)
	}
	if n, err := strconv.Atoi(p.ReplyTo); err == nil {
		params["reply_parameters"] = jsonText(map[string]any{"message_id": n, "allow_sending_without_reply": true})
	}
	if p.Silent || p.Class == chat.Notice {
		params["disable_notification"] = "true"
	}
	if len(p.Buttons) == 0 {
		return params, nil
	}
	keys, err := b.keyboard(ctx, p)
	params["reply_markup"] = keys
	return params, err
}

func (b *Bot) send(ctx context.Context, to chat.Address, l lane, method string, params tgbotapi.Params, files ...tgbotapi.RequestFile) (string, error) {
	result, err := b.api.call(ctx, l, method, params, files...)
	if err != nil {
		return "", b.verdict(err, to, false)
	}
	var m struct {
		ID int `json:"message_id"`
	}
	if err := json.Unmarshal(result, &m); err != nil || m.ID == 0 {
		return "", &channels.SendError{Verdict: channels.Unsure, Code: "no_receipt", Err: fmt.Errorf("telegram %s: no message id in the answer", method)}
	}
	return strconv.Itoa(m.ID), nil
}

func (b *Bot) sendFile(ctx context.Context, p channels.Piece, a chat.Attachment) (string, error) {
	if len(a.Data) > largestUploadMB<<20 {
		return "", &channels.SendError{Verdict: channels.Refused, Code: "file_too_large", Err: channels.ErrTooLarge}
	}
	kind := fileKind(a)
	if kind == kindVoice && b.voiceless.has(p.To.Conversation) {
		kind = kindAudio
	}
	params, err := b.params(ctx, p)
	if err != nil {
		return "", err
	}
	text(params, "caption", p)
	file := tgbotapi.RequestFile{Name: kind, Data: tgbotapi.FileBytes{Name: fileName(a, kind), Bytes: a.Data}}
	method := "send" + strings.ToUpper(kind[:1]) + kind[1:]
	return b.send(ctx, p.To, b.api.files, method, params, file)
}

// Edit implements channels.Editor. A message that already reads like that is a success.
func (b *Bot) Edit(ctx context.Context, to chat.Address, id string, p channels.Piece) error {
	params := tgbotapi.Params{"chat_id": to.Conversation, "message_id": id}
	text(params, "text", p)
	if !*b.cfg.LinkPreview {
		params["link_preview_options"] = `{"is_disabled":true}`
	}
	if len(p.Buttons) > 0 {
		p.To = to
		keys, err := b.keyboard(ctx, p)
		if err != nil {
			return err
		}
		params["reply_markup"] = keys
	}
	if _, err := b.api.call(ctx, b.api.calls, "editMessageText", params); err != nil {
		return b.verdict(err, to, true)
	}
	return nil
}

// Delete implements channels.Editor.
func (b *Bot) Delete(ctx context.Context, to chat.Address, id string) error {
	params := tgbotapi.Params{"chat_id": to.Conversation, "message_id": id}
	if _, err := b.api.call(ctx, b.api.calls, "deleteMessage", params); err != nil {
		return b.verdict(err, to, true)
	}
	return nil
}

// Typing implements channels.Typer.
func (b *Bot) Typing(ctx context.Context, to chat.Address) error { return b.action(ctx, to, "typing") }

// Recording implements channels.Recorder.
func (b *Bot) Recording(ctx context.Context, to chat.Address) error {
	return b.action(ctx, to, "record_voice")
}

// action shows a chat action. Unlike messages, they name the General topic.
func (b *Bot) action(ctx context.Context, to chat.Address, action string) error {
	params := tgbotapi.Params{"chat_id": to.Conversation, "action": action}
	if !b.threadless.has(to.Conversation) {
		params.AddNonEmpty("message_thread_id", to.Thread)
	}
	if _, err := b.api.call(ctx, b.api.calls, "sendChatAction", params); err != nil {
		return b.verdict(err, to, true)
	}
	return nil
}

// TypingTTL implements channels.Typer.
func (b *Bot) TypingTTL() time.Duration { return typingTTL }
