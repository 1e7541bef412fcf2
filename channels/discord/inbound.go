package discord

import (
	"context"
	"errors"
	"mime"
	"path"
	"slices"
	"strings"
	"time"

	"understudy/chat"
)

// Types and flags of messages that people write (spec/chat.md §2.8).
const (
	messageDefault       = 0
	messageReply         = 19
	messageThreadStarter = 21

	flagSuppressEmbeds = 1 << 2
	flagEphemeral      = 1 << 6
	flagSilent         = 1 << 12
	flagVoice          = 1 << 13

	mostAttachments = 10
)

// eventKey identifies a delivery. Two accounts may be on one server, and each gets its own.
func (b *Bot) eventKey(id string) string {
	if b.deps.Account == "" {
		return Channel + ":" + id
	}
	return Channel + "/" + b.deps.Account + ":" + id
}

// inbound normalises a message. It reports false for the bot's own messages, for what Discord itself
// says, and for changes that are none of the text.
func (r *run) inbound(ctx context.Context, m *message, edited bool) (chat.Inbound, bool) {
	self := r.self.Load()
	switch {
	case self == nil || m.Author == nil || !isID(m.ID) || m.Channel == "" || m.Author.ID == self.ID:
		return chat.Inbound{}, false
	case m.Type != messageDefault && m.Type != messageReply && m.Type != messageThreadStarter:
		return chat.Inbound{}, false
	case edited && (m.Edited == "" || r.recent.same(m.ID, m.Content)):
		return chat.Inbound{}, false
	}
	in := chat.Inbound{
		ID:          m.ID,
		EventKey:    r.eventKey(m.ID),
		Address:     r.address(ctx, m.Channel, m.Guild),
		Space:       m.Guild,
		Sender:      chat.Sender{ID: m.Author.ID, Name: m.Author.name(m.Member), Bot: m.Author.Bot || m.Webhook != ""},
		Attachments: attachments(m),
		At:          r.skew.Here(timestamp(m.Timestamp)),
		Edited:      edited,
	}
	if edited {
		in.EventKey += ":" + m.Edited
	}
	if m.Member != nil {
		in.Roles = m.Member.Roles
	}
	in.Title = r.title(in.Address)
	r.addressing(&in, m, self)
	if in.Text == "" && len(in.Attachments) == 0 {
		r.forwarded(&in, m)
	}
	if in.Text == "" && len(in.Attachments) == 0 && !in.Mentioned {
		return chat.Inbound{}, false
	}
	if !edited {
		r.autoThread(&in)
	} else if known, ok := r.recent.get(m.ID); ok {
		in.Address = known.address
	}
	r.recent.put(m.ID, in, m.Content)
	return in, true
}

// forwarded takes the content of a message that somebody passed on without a word.
func (r *run) forwarded(in *chat.Inbound, m *message) {
	if len(m.Forwarded) == 0 || m.Forwarded[0].Message == nil {
		return
	}
	original := m.Forwarded[0].Message
	in.Text = strings.TrimSpace(r.readable(original, ""))
	in.Attachments = attachments(original)
}

// address returns where a message was written. A thread belongs to the channel it hangs on.
func (r *run) address(ctx context.Context, channelID, guildID string) chat.Address {
	a := chat.Address{Channel: Channel, Account: r.deps.Account, Conversation: channelID, Kind: chat.Room}
	c, err := r.look(ctx, channelID, guildID)
	switch {
	case guildID == "" && err == nil && c.Type == typeGroupDirect:
		a.Kind = chat.Group
	case guildID == "":
		a.Kind = chat.Direct
	case err == nil && c.thread() && c.Parent != "":
		a.Conversation, a.Thread = c.Parent, channelID
	}
	return a
}

// look learns what a channel is. A failure that passes is waited for, a while: a thread that is taken
// for a channel gets the wrong session, and the wrong rules.
func (r *run) look(ctx context.Context, id, guildID string) (channel, error) {
	wait := firstRepeat
	for attempt := 1; ; attempt++ {
		c, err := r.channel(ctx, id)
		var e *callError
		passes := errors.As(err, &e) && (e.status == 0 || e.status >= 429 || e.garbled)
		if err == nil || !passes || attempt == lookAttempts || ctx.Err() != nil {
			if err != nil && guildID != "" {
				r.log.Warn("channel unknown", "channel_id", id, "error", err)
			}
			return c, err
		}
		sleep(ctx, min(max(wait, e.retryAfter), longestRepeat))
		wait *= 4
	}
}

// autoThread gives a question in a channel its own thread, if that is wanted there. The thread has
// the id of the message; it is opened with the first answer.
func (r *run) autoThread(in *chat.Inbound) {
	a := &in.Address
	if a.Kind != chat.Room || a.Thread != "" || in.Sender.Bot {
		return
	}
	place := r.cfg.Effective(in.Space, a.Conversation)
	c, known := r.directory.channel(a.Conversation)
	if !*place.AutoThread || !known || c.Type != typeText && c.Type != typeNews || !in.Mentioned && *place.RequireMention {
		return
	}
	a.Thread = in.ID
	r.planned.add(in.ID, title(in.Text, longestThreadName))
}

// attachments lists the files of a message. Nothing is downloaded.
func attachments(m *message) []chat.Attachment {
	var out []chat.Attachment
	for _, f := range m.Attachments[:min(len(m.Attachments), mostAttachments)] {
		if f.URL == "" {
			continue
		}
		kind := f.MediaType
		if kind == "" {
			kind = mime.TypeByExtension(path.Ext(f.Name))
		}
		if kind == "" {
			kind = "application/octet-stream"
		}
		out = append(out, chat.Attachment{Name: oneLine(f.Name), MediaType: kind, Size: max(f.Size, 0), Ref: f.URL, Voice: m.Flags&flagVoice != 0})
	}
	return out
}

// timestamp reads a time of Discord; one that cannot be read is now.
func timestamp(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t = time.Now()
	}
	return t.UTC()
}

// refer adds the message that is answered, and reports whether it is one of the bot.
func refer(in *chat.Inbound, m *message, self *user) bool {
	if m.Type != messageReply || m.Reference == nil || m.Reference.Message == "" {
		return false
	}
	in.ReplyTo = m.Reference.Message
	if m.Referenced == nil {
		return false
	}
	in.Quote = m.Referenced.Content
	if a := m.Referenced.Author; a != nil {
		in.QuoteFrom = chat.Sender{ID: a.ID, Name: a.name(m.Referenced.Member), Bot: a.Bot || m.Referenced.Webhook != "", Self: a.ID == self.ID}
	}
	return m.Referenced.Author != nil && m.Referenced.Author.ID == self.ID
}

// mentionedIn reports whether a list of users contains one.
func mentionedIn(list []user, id string) bool {
	return slices.ContainsFunc(list, func(u user) bool { return u.ID == id })
}
