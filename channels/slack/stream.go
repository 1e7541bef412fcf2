package slack

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"understudy/channels"
	"understudy/chat"
)

// Streams implements channels.Streamer: Slack streams into threads only, and outside direct messages
// only for somebody.
func (b *Bot) Streams(p channels.Piece) bool {
	return thread(p) != "" && len(p.Buttons) == 0 && (p.To.Kind == chat.Direct || p.For != "")
}

// StartStream implements channels.Streamer.
func (b *Bot) StartStream(ctx context.Context, p channels.Piece) (string, error) {
	if !b.Streams(p) {
		return "", &channels.SendError{Verdict: channels.Refused, Code: "no_stream", Err: errors.New("slack does not stream here")}
	}
	options := []slack.MsgOption{slack.MsgOptionTS(thread(p))}
	if p.Text != "" {
		text, err := piece(p.Text)
		if err != nil {
			return "", err
		}
		options = append(options, text)
	}
	if p.To.Kind != chat.Direct {
		self, err := b.identity(ctx)
		if err != nil {
			return "", b.verdict(err, true)
		}
		options = append(options, slack.MsgOptionRecipientUserID(p.For), slack.MsgOptionRecipientTeamID(self.team))
	}
	var id string
	err := b.api.call(ctx, "chat.startStream", func(ctx context.Context, c *slack.Client) error {
		_, ts, err := c.StartStreamContext(ctx, p.To.Conversation, options...)
		id = ts
		return err
	})
	switch {
	case err != nil:
		return "", b.verdict(err, false)
	case id == "":
		return "", &channels.SendError{Verdict: channels.Unsure, Code: "no_receipt", Err: errors.New("slack chat.startStream: no timestamp in the answer")}
	}
	return id, nil
}

// AppendStream implements channels.Streamer. What it adds cannot be taken back, so a failure in which
// it may have been added is Unsure.
func (b *Bot) AppendStream(ctx context.Context, to chat.Address, id, text string) error {
	if text == "" {
		return nil
	}
	added, err := piece(text)
	if err != nil {
		return err
	}
	err = b.api.call(ctx, "chat.appendStream", func(ctx context.Context, c *slack.Client) error {
		_, _, err := c.AppendStreamContext(ctx, to.Conversation, id, added)
		return err
	})
	return b.verdictOrNil(err, false)
}

// StopStream implements channels.Streamer. A stream that is over already is a success.
func (b *Bot) StopStream(ctx context.Context, to chat.Address, id string) error {
	err := b.api.call(ctx, "chat.stopStream", func(ctx context.Context, c *slack.Client) error {
		_, _, err := c.StopStreamContext(ctx, to.Conversation, id)
		return err
	})
	var e *callError
	if errors.As(err, &e) && e.code == "message_not_in_streaming_state" {
		return nil
	}
	return b.verdictOrNil(err, true)
}

// piece is one addition to a stream, in which no mention can be hidden.
func piece(text string) (slack.MsgOption, error) {
	text = quiet(text)
	if utf8.RuneCountInString(text) > longestMarkdown {
		return nil, &channels.SendError{Verdict: channels.TooLong, Code: "too_long", Err: errors.New("more than a stream takes at once")}
	}
	return slack.MsgOptionMarkdownText(text), nil
}
