package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"understudy/channels"
	"understudy/chat"
)

// Send implements channels.Adapter. A text is one call, and one more where Slack refuses its Markdown; the
// text of a piece with files goes in front of them. When something fails behind the first of several messages, the receipt names what was sent
// and the verdict is Unsure. The receipt of a file is the file's id, since Slack tells no other; that
// of an answer to an interaction is empty, because it cannot be changed.
func (b *Bot) Send(ctx context.Context, p channels.Piece) (channels.Receipt, error) {
	if p.Via != "" && p.Class == chat.Command && len(p.Media) == 0 {
		if done, err := b.sendPrivately(ctx, p); done {
			return channels.Receipt{}, err
		}
	}
	p.Via = ""
	conversation, err := b.place(ctx, p.To)
	if err != nil {
		return channels.Receipt{}, b.verdict(err, true)
	}
	p.To.Conversation = conversation
	var sent channels.Receipt
	fail := func(err error) (channels.Receipt, error) {
		if len(sent.IDs) > 0 {
			err = &channels.SendError{Verdict: channels.Unsure, Code: "partly_sent", Err: err}
		}
		return sent, err
	}
	if p.Text+p.Plain != "" || len(p.Media) == 0 {
		id, err := b.post(ctx, p)
		if err != nil {
			return fail(err)
		}
		sent.IDs = append(sent.IDs, id)
	}
	for _, m := range p.Media {
		id, err := b.sendFile(ctx, p, m)
		if err != nil {
			return fail(err)
		}
		sent.IDs = append(sent.IDs, id)
	}
	return sent, nil
}

// place returns the conversation of an address. A person stands for the direct messages with them,
// which are opened once.
func (b *Bot) place(ctx context.Context, to chat.Address) (string, error) {
	if !userID.MatchString(to.Conversation) || to.Conversation[0] == 'B' {
		return to.Conversation, nil
	}
	if id, ok := b.places.get(to.Conversation); ok {
		return id, nil
	}
	var id string
	err := b.api.call(ctx, "conversations.open", func(ctx context.Context, c *slack.Client) error {
		got, _, _, err := c.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{to.Conversation}})
		if err == nil {
			id = got.ID
		}
		return err
	})
	if err != nil {
		return "", err
	}
	b.places.put(to.Conversation, id)
	return id, nil
}

// thread is the root of the thread that a piece belongs to, "" = none. A reference opens one.
func thread(p channels.Piece) string {
	if p.To.Thread != "" {
		return p.To.Thread
	}
	return p.ReplyTo
}

// options are a layout as options of the library, in the thread of a piece.
func options(what layout, p channels.Piece) []slack.MsgOption {
	out := what.options()
	if root := thread(p); root != "" {
		out = append(out, slack.MsgOptionTS(root))
	}
	return out
}

// show makes a call that shows a layout. Markdown that Slack refuses is shown as mrkdwn instead, which
// is a second call: nothing has come of the first.
func (b *Bot) show(what layout, call func(layout) error) error {
	err := call(what)
	var e *callError
	if !errors.As(err, &e) || e.meaning().verdict != channels.Markups {
		return err
	}
	other, ok := what.inMrkdwn(b.deps.Mrkdwn)
	if !ok {
		return err
	}
	b.log.Info("markdown refused; shown as mrkdwn", "code", e.code)
	return call(other)
}

func (b *Bot) post(ctx context.Context, p channels.Piece) (string, error) {
	what, err := b.layout(ctx, p)
	if err != nil {
		return "", b.verdict(err, false)
	}
	unfurl := []slack.MsgOption{slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl()}
	if b.cfg.UnfurlLinks {
		unfurl = []slack.MsgOption{slack.MsgOptionEnableLinkUnfurl()}
	}
	var id string
	err = b.show(what, func(what layout) error {
		return b.api.call(ctx, "chat.postMessage", func(ctx context.Context, c *slack.Client) error {
			_, ts, err := c.PostMessageContext(ctx, p.To.Conversation, append(options(what, p), unfurl...)...)
			id = ts
			return err
		})
	})
	switch {
	case err != nil:
		return "", b.verdict(err, false)
	case id == "":
		return "", &channels.SendError{Verdict: channels.Unsure, Code: "no_receipt", Err: errors.New("slack chat.postMessage: no timestamp in the answer")}
	}
	return id, nil
}

// Edit implements channels.Editor.
func (b *Bot) Edit(ctx context.Context, to chat.Address, id string, p channels.Piece) error {
	p.To, p.Via = to, ""
	what, err := b.layout(ctx, p)
	if err != nil {
		return b.verdict(err, true)
	}
	conversation, err := b.place(ctx, to)
	if err == nil {
		err = b.show(what, func(what layout) error {
			options := what.options()
			if (what.markdown == "" || what.mrkdwn != "") && len(what.blocks) == 0 {
				options = append(options, slack.MsgOptionBlocks()) // those of before would stay
			}
			return b.api.call(ctx, "chat.update", func(ctx context.Context, c *slack.Client) error {
				_, _, _, err := c.UpdateMessageContext(ctx, conversation, id, options...)
				return err
			})
		})
	}
	return b.verdictOrNil(err, true)
}

// Delete implements channels.Editor.
func (b *Bot) Delete(ctx context.Context, to chat.Address, id string) error {
	conversation, err := b.place(ctx, to)
	if err == nil {
		err = b.api.call(ctx, "chat.delete", func(ctx context.Context, c *slack.Client) error {
			_, _, err := c.DeleteMessageContext(ctx, conversation, id)
			return err
		})
	}
	return b.verdictOrNil(err, true)
}

// largestUpload is a bound of ours: a file has to be in memory as a whole.
const largestUpload = 256 << 20

// sendFile uploads a file and shares it: three calls, of which only the last can be seen by people.
func (b *Bot) sendFile(ctx context.Context, p channels.Piece, a chat.Attachment) (string, error) {
	switch n := len(a.Data); {
	case n == 0:
		return "", &channels.SendError{Verdict: channels.Refused, Code: "empty_file", Err: errors.New("slack takes no empty files")}
	case n > largestUpload:
		return "", &channels.SendError{Verdict: channels.Refused, Code: "file_too_large", Err: channels.ErrTooLarge}
	}
	name := fileName(a)
	var ticket *slack.GetUploadURLExternalResponse
	err := b.api.call(ctx, "files.getUploadURLExternal", func(ctx context.Context, c *slack.Client) (err error) {
		ticket, err = c.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{FileName: name, FileSize: len(a.Data)})
		return err
	})
	if err != nil {
		return "", b.verdict(err, true)
	}
	err = b.api.callWithin(ctx, uploadLimit, "upload", func(ctx context.Context, c *slack.Client) error {
		return c.UploadToURL(ctx, slack.UploadToURLParameters{UploadURL: ticket.UploadURL, Filename: name, Content: string(a.Data)})
	})
	if err != nil {
		return "", b.verdict(err, true)
	}
	err = b.api.call(ctx, "files.completeUploadExternal", func(ctx context.Context, c *slack.Client) error {
		_, err := c.CompleteUploadExternalContext(ctx, slack.CompleteUploadExternalParameters{
			Files: []slack.FileSummary{{ID: ticket.FileID, Title: name}}, Channel: p.To.Conversation, ThreadTimestamp: thread(p),
		})
		return err
	})
	if err != nil {
		return "", b.verdict(err, false)
	}
	return ticket.FileID, nil
}

// Slack shows a status in threads for two minutes, or until the bot speaks.
const (
	typingTTL  = 2 * time.Minute
	typingText = "is thinking…"
)

// Typing implements channels.Typer. Slack has a sign in threads only; elsewhere the verdict is Refused,
// and Config.TypingReaction is for the caller to show on the question.
func (b *Bot) Typing(ctx context.Context, to chat.Address) error {
	if to.Thread == "" {
		return &channels.SendError{Verdict: channels.Refused, Code: "no_typing", Err: errors.New("slack shows no such sign outside threads")}
	}
	return b.status(ctx, to, typingText)
}

// TypingTTL implements channels.Typer.
func (b *Bot) TypingTTL() time.Duration { return typingTTL }

// Quiet implements channels.Quieter.
func (b *Bot) Quiet(ctx context.Context, to chat.Address) error {
	if to.Thread == "" {
		return nil
	}
	return b.status(ctx, to, "")
}

func (b *Bot) status(ctx context.Context, to chat.Address, text string) error {
	err := b.api.call(ctx, "assistant.threads.setStatus", func(ctx context.Context, c *slack.Client) error {
		return c.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
			ChannelID: to.Conversation, ThreadTS: to.Thread, Status: text,
		})
	})
	err = b.verdictOrNil(err, true)
	var e *channels.SendError
	if errors.As(err, &e) && e.Verdict != channels.Retry && e.Verdict != channels.Gone {
		e.Verdict = channels.Refused // there is no other way to show it
	}
	return err
}

// React implements channels.Reactor.
func (b *Bot) React(ctx context.Context, to chat.Address, id, emoji string) error {
	return b.react(ctx, "reactions.add", to, id, emoji, (*slack.Client).AddReactionContext, "already_reacted")
}

// Unreact implements channels.Reactor.
func (b *Bot) Unreact(ctx context.Context, to chat.Address, id, emoji string) error {
	return b.react(ctx, "reactions.remove", to, id, emoji, (*slack.Client).RemoveReactionContext, "no_reaction", "message_not_found")
}

// react changes a reaction. The codes in done tell that there is nothing to do.
func (b *Bot) react(ctx context.Context, method string, to chat.Address, id, emoji string, f func(*slack.Client, context.Context, string, slack.ItemRef) error, done ...string) error {
	name, ok := reactionName(emoji)
	if !ok {
		return &channels.SendError{Verdict: channels.Refused, Code: "unknown_emoji", Err: fmt.Errorf("the name that Slack has for an emoji is not known: %q", clip(emoji))}
	}
	err := b.api.call(ctx, method, func(ctx context.Context, c *slack.Client) error {
		return f(c, ctx, name, slack.NewRefToMessage(to.Conversation, id))
	})
	var e *callError
	if errors.As(err, &e) && slices.Contains(done, e.code) {
		return nil
	}
	return b.verdictOrNil(err, true)
}
