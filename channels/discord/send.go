package discord

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"understudy/channels"
	"understudy/chat"
)

const (
	typingTTL    = 10 * time.Second // how long Discord shows the sign
	longestNonce = 25
	mostFiles    = 10 // per message
)

// outgoing is a message as it is sent. The library's own type lacks the nonce.
type outgoing struct {
	Content      string      `json:"content,omitempty"`
	Nonce        string      `json:"nonce,omitempty"`
	EnforceNonce bool        `json:"enforce_nonce,omitempty"`
	Flags        int         `json:"flags,omitempty"`
	Reference    *reference  `json:"message_reference,omitempty"`
	Allowed      noPings     `json:"allowed_mentions"`
	Components   []component `json:"components,omitempty"`
}

// edited is a change of a message. What is nil stays; no components take away those that are there.
type edited struct {
	Content    *string     `json:"content,omitempty"`
	Flags      *int        `json:"flags,omitempty"`
	Allowed    noPings     `json:"allowed_mentions"`
	Components []component `json:"components,omitzero"`
}

type reference struct {
	Message string `json:"message_id"`
	Fail    bool   `json:"fail_if_not_exists"`
}

// noPings is allowed_mentions: nothing that the bot writes notifies anybody, whatever is in it.
type noPings struct{}

// MarshalJSON implements json.Marshaler.
func (noPings) MarshalJSON() ([]byte, error) { return []byte(`{"parse":[],"replied_user":false}`), nil }

// Send implements channels.Adapter. A piece is one message; only more than ten files need several. A
// key goes out with each, so that sending again what was perhaps sent changes nothing.
func (b *Bot) Send(ctx context.Context, p channels.Piece) (channels.Receipt, error) {
	if err := b.fits(p); err != nil {
		return channels.Receipt{}, err
	}
	via := b.vias.get(p.Via)
	if via != nil && p.Class == chat.Command {
		if id, err := b.replyTo(ctx, via, p); id != "" || err != nil {
			return receipt(id), err
		}
	}
	var sent channels.Receipt
	p.Via = ""
	for i := 0; i == 0 || i*mostFiles < len(p.Media); i++ {
		part := p
		part.Media = p.Media[i*mostFiles : min((i+1)*mostFiles, len(p.Media))]
		if i > 0 {
			part.Text, part.Plain, part.ReplyTo, part.Buttons = "", "", "", nil
			if p.Key != "" {
				part.Key = p.Key + "+" + strconv.Itoa(i)
			}
		}
		id, err := b.post(ctx, part)
		if err != nil {
			return sent, verdict(err, false)
		}
		sent.IDs = append(sent.IDs, id)
	}
	if via != nil {
		b.dismiss(ctx, via)
	}
	return sent, nil
}

func receipt(id string) channels.Receipt {
	if id == "" {
		return channels.Receipt{}
	}
	return channels.Receipt{IDs: []string{id}}
}

// fits refuses what Discord would refuse after an upload.
func (b *Bot) fits(p channels.Piece) error {
	size := 0
	for _, m := range p.Media {
		size += len(m.Data)
	}
	if size > b.cfg.MediaMaxMB<<20 {
		return &channels.SendError{Verdict: channels.Refused, Code: "file_too_large", Err: channels.ErrTooLarge}
	}
	return nil
}

// compose makes the message of a piece.
func (b *Bot) compose(ctx context.Context, p channels.Piece) (outgoing, []*discordgo.File) {
	m := outgoing{Content: content(p), Components: b.offer(ctx, p), Flags: b.flags()}
	if p.Silent || p.Class == chat.Notice || p.Class == chat.Progress {
		m.Flags |= flagSilent
	}
	if p.Key != "" {
		m.Nonce, m.EnforceNonce = nonce(p.Key), true
	}
	if isID(p.ReplyTo) {
		m.Reference = &reference{Message: p.ReplyTo}
	}
	return m, uploads(p.Media)
}

func content(p channels.Piece) string {
	if p.Text == "" {
		return p.Plain
	}
	return p.Text
}

func (b *Bot) flags() int {
	if *b.cfg.SuppressEmbeds {
		return flagSuppressEmbeds
	}
	return 0
}

// nonce is a key that Discord takes: one that is too long is replaced by its fingerprint.
func nonce(key string) string {
	if len(key) <= longestNonce {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:longestNonce]
}

func uploads(media []chat.Attachment) []*discordgo.File {
	var out []*discordgo.File
	for i, m := range media {
		out = append(out, &discordgo.File{Name: fileName(m, i), ContentType: mediaType(m), Reader: bytes.NewReader(m.Data)})
	}
	return out
}

// fileName is the last element of the given name, in case somebody made a path of it, or lines of a
// header.
func fileName(a chat.Attachment, n int) string {
	name := path.Base(strings.ReplaceAll(oneLine(a.Name), `\`, "/"))
	if name == "." || name == "/" || name == ".." {
		return "file" + strconv.Itoa(n+1)
	}
	return name
}

// mediaType is a type that can stand in a header.
func mediaType(a chat.Attachment) string {
	if strings.ContainsFunc(a.MediaType, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return a.MediaType
}

// create makes the call that sends a message to a place.
func (b *Bot) create(ctx context.Context, place string, m outgoing, files []*discordgo.File) (string, error) {
	data, err := b.api.call(ctx, request{
		what: "send message", method: http.MethodPost, url: discordgo.EndpointChannelMessages(place), route: "send " + place, body: m, files: files, limit: limitOf(files),
	})
	if err != nil {
		return "", err
	}
	return messageID("send message", data)
}

func limitOf(files []*discordgo.File) time.Duration {
	if len(files) > 0 {
		return uploadLimit
	}
	return callLimit
}

// messageID reads the id of what was sent. Without one, it was sent all the same.
func messageID(what string, data json.RawMessage) (string, error) {
	var m struct {
		ID string `json:"id"`
	}
	if decode(data, &m); isID(m.ID) {
		return m.ID, nil
	}
	return "", &channels.SendError{Verdict: channels.Unsure, Code: "no_receipt", Err: fmt.Errorf("discord %s: no message id in the answer", what)}
}

// replyTo answers an interaction. An empty id without an error means that it is too late for that:
// then the reply is an ordinary message.
func (b *Bot) replyTo(ctx context.Context, v *via, p channels.Piece) (string, error) {
	select {
	case <-v.acked:
	case <-ctx.Done():
		return "", &channels.SendError{Verdict: channels.Retry, Code: "network", Err: context.Cause(ctx)}
	}
	if v.isDead() {
		return "", nil
	}
	p.Key, p.ReplyTo = nonce(p.Key), ""
	m, files := b.compose(ctx, p)
	m.Nonce, m.EnforceNonce = "", false // a message of its own kind: Discord knows no nonce there
	m.Flags = b.flags() | flagEphemeral
	first := v.takeOriginal(p.Key)
	r := b.followUp(v, m, files)
	if first {
		r = b.original(v, http.MethodPatch, b.change(m.Content, m.Components), files)
	}
	data, err := b.api.call(ctx, r)
	id := ""
	if err == nil {
		id, err = messageID(r.what, data)
	}
	var e *callError
	switch {
	case err == nil:
		return id, nil
	case hasCode(err, codeUnknownInteraction, codeUnknownWebhook, codeDeadToken, codeUnknownMessage), errors.As(err, &e) && e.status == http.StatusUnauthorized:
		v.kill()
		b.log.Info("interaction expired; the reply goes to the conversation", "interaction", v.id)
		return "", nil
	}
	failure := verdict(err, first)
	failure.Once = failure.Verdict == channels.Unsure && !first // which further replies there are cannot be asked
	return "", failure
}

// dismiss takes back "thinking" when the answer became a message for everybody.
func (b *Bot) dismiss(ctx context.Context, v *via) {
	select {
	case <-v.acked:
	default:
		return
	}
	if v.component || v.isDead() || !v.takeOriginal("") {
		return
	}
	if _, err := b.api.call(ctx, b.original(v, http.MethodDelete, nil, nil)); err != nil {
		b.log.Debug("placeholder stays", "interaction", v.id, "error", err)
	}
}
