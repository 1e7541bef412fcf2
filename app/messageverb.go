package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"understudy/chat"
)

// Bounds of `bot message send`, in bytes.
const (
	largestMedia   = 50 << 20
	largestMessage = largestMedia*4/3 + (1 << 20) // as JSON
)

// OutgoingMessage is what `bot message send` says.
type OutgoingMessage struct {
	Channel string            `json:"channel"`
	Account string            `json:"account,omitempty"`
	To      string            `json:"to"`
	Thread  string            `json:"thread,omitempty"`
	Text    string            `json:"text"`
	Media   []chat.Attachment `json:"media,omitempty"`
}

// sendMessage puts a message into the outbox.
func (a *App) sendMessage(ctx context.Context, m OutgoingMessage) (any, error) {
	to, err := parseTarget(m.Channel, m.Account, m.To, m.Thread)
	if err != nil {
		return nil, err
	}
	if _, ok := a.roster.of(to); !ok {
		return nil, fmt.Errorf("there is no account %s of %s", accountID(to.Account), m.Channel)
	}
	o := chat.Outbound{To: to, Class: chat.Command, Markdown: m.Text, Media: m.Media, TurnID: "send-" + uuid.NewString()}
	if err := a.delivery.Send(ctx, o); err != nil {
		return nil, err
	}
	return map[string]string{"id": o.TurnID}, nil
}

// notify tells somebody something at a known address, best effort.
func (a *App) notify(ctx context.Context, o chat.Outbound) (any, error) {
	o.Class, o.TurnID = chat.Command, "send-"+uuid.NewString()
	return map[string]string{"id": o.TurnID}, a.delivery.Send(ctx, o)
}

// MessageSend is `bot message send`: through the running bot, so that order, pace and the outbox count.
func MessageSend(ctx context.Context, o Options, std Std, m OutgoingMessage, media []string) int {
	if strings.TrimSpace(m.Text) == "" && len(media) == 0 {
		fmt.Fprintln(std.Err, "bot: there is nothing to say: give --message or --media")
		return ExitUsage
	}
	for _, path := range media {
		file, err := readMedia(path)
		if err != nil {
			return fail(std, err)
		}
		m.Media = append(m.Media, file)
	}
	c, err := remote(o)
	if err == nil {
		err = c.Post(ctx, "/v1/messages", m, nil)
	}
	if err != nil {
		return fail(std, err)
	}
	fmt.Fprintln(std.Out, "The bot has it and sends it; it survives a restart. bot channels status tells when a channel is down.")
	return ExitOK
}

// readMedia reads a file to send.
func readMedia(path string) (chat.Attachment, error) {
	f, err := os.Open(path)
	if err != nil {
		return chat.Attachment{}, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, largestMedia+1))
	switch {
	case err != nil:
		return chat.Attachment{}, err
	case len(data) > largestMedia:
		return chat.Attachment{}, fmt.Errorf("%s is larger than %d MB", path, largestMedia>>20)
	case len(data) == 0:
		return chat.Attachment{}, errors.New(path + " is empty")
	}
	kind := mime.TypeByExtension(filepath.Ext(path))
	if kind == "" {
		kind = http.DetectContentType(data)
	}
	return chat.Attachment{Name: filepath.Base(path), MediaType: kind, Size: int64(len(data)), Data: data}, nil
}
