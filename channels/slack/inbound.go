package slack

import (
	"context"
	"fmt"
	"strings"

	"understudy/channels"
	"understudy/chat"
)

// mostFiles bounds the files of one message (spec/chat.md §2.7).
const mostFiles = 8

// inbox takes what arrives, over whichever way. It may be used from several goroutines.
type inbox struct {
	*Bot
	sink channels.Sink
	self identity
}

// take hands one payload on. nil means that it may be acknowledged: it is stored, or there is nothing
// in it for the bot, or nobody could ever read it.
func (b *inbox) take(ctx context.Context, kind string, payload []byte) error {
	switch kind {
	case kindEvents:
		return b.event(ctx, payload)
	case kindSlash:
		var s slash
		if err := decode(payload, &s); err != nil {
			b.unreadable(kind, err)
			return nil
		}
		return b.slash(ctx, s)
	case kindInteractive:
		var i interaction
		if err := decode(payload, &i); err != nil {
			b.unreadable(kind, err)
			return nil
		}
		return b.act(ctx, i)
	}
	b.log.Debug("envelope of an unknown kind", "kind", plainCode(kind))
	return nil
}

// unreadable notes what cannot be decoded. It is acknowledged all the same: it would not become
// readable by coming again.
func (b *inbox) unreadable(kind string, err error) {
	b.log.Warn("payload skipped", "kind", kind, "error", clip(err.Error()))
}

func (b *inbox) event(ctx context.Context, payload []byte) error {
	var o outer
	var e event
	if err := decode(payload, &o); err != nil {
		b.unreadable(kindEvents, err)
		return nil
	}
	if err := decode(o.Event, &e); err != nil {
		b.unreadable(kindEvents, err)
		return nil
	}
	switch e.Type {
	case "assistant_thread_started":
		return b.roots.add(ctx, e.Assistant.Channel, e.Assistant.Thread)
	case "message", "app_mention":
	default:
		return nil
	}
	if e.ChannelType != "" && e.Channel != "" {
		b.kinds.put(e.Channel, e.ChannelType)
	}
	if b.unplaced(e) {
		if err := b.learnPlace(ctx, e.Channel); err != nil {
			return fmt.Errorf("it is not known what kind of conversation a mention is from: %w", err)
		}
	}
	in, named, ok := b.inbound(e, o)
	if !ok {
		return nil
	}
	if err := b.accept(ctx, in); err != nil {
		return err
	}
	if in.Address.Kind == chat.Room {
		b.names.want(in.Address.Conversation)
	}
	b.names.want(in.Sender.ID)
	for _, id := range named {
		b.names.want(id)
	}
	return nil
}

// accept gives a message to the sink, unless the sink has it: a mention is told twice, and Slack has
// told messages many times under different ids. What was first told as an ordinary message goes to the
// sink once more when it turns out to be a mention. After a restart the sink knows it by its keys.
func (b *inbox) accept(ctx context.Context, in chat.Inbound) error {
	message := in.EventKey
	if len(in.AltKeys) > 0 {
		message = in.AltKeys[0]
	}
	mention, known := b.stored.get(message)
	if known && (mention || !in.Mentioned) {
		return nil
	}
	if err := b.separate(ctx, &in.Address); err != nil {
		return err
	}
	if err := b.sink.Accept(ctx, in); err != nil {
		return err
	}
	b.stored.put(message, mention || in.Mentioned)
	return nil
}

// inbound normalises a message. It reports false for the bot's own messages, for notes of Slack about
// the channel, and for what is not for the bot to see.
func (b *inbox) inbound(e event, o outer) (in chat.Inbound, named []string, ok bool) {
	m := e
	switch e.Subtype {
	case "message_changed":
		if e.Message == nil || unchanged(e.Message, e.Previous) {
			return in, nil, false
		}
		m, in.Edited = *e.Message, true
		if m.Subtype == "tombstone" { // a deleted root, whose replies are kept
			m, in.Edited, in.Deleted = deletion(e, m.TS), false, true
		}
	case "message_deleted":
		m, in.Deleted = deletion(e, e.Deleted), true
	}
	address, ok := b.address(e.Channel, e.ChannelType, m)
	if !ok || m.TS == "" || !readable(m.Subtype) || b.own(m) {
		return in, nil, false
	}
	in.ID, in.Address, in.Space, in.At = m.TS, address, o.Team, b.skew.Here(moment(m.TS))
	if in.Space == "" {
		in.Space = b.self.team
	}
	in.Sender = b.sender(m)
	b.key(&in, m, o)
	if in.Deleted {
		return in, nil, true
	}
	text := b.reader().read(m.Text)
	in.Text, in.MentionsOthers = text.text, text.others && !text.mentions
	in.Mentioned = text.mentions || e.Type == "app_mention" || b.answers(m, address)
	in.Attachments = attachments(m.files())
	in.Title = b.title(address)
	in.Quote, in.QuoteFrom = forwarded(m)
	in.QuoteFrom.Self = in.Quote != "" && b.own(event{User: in.QuoteFrom.ID, Bot: in.QuoteFrom.ID})
	if in.Text == "" && len(in.Attachments) == 0 && in.Quote == "" && !in.Mentioned {
		return in, nil, false
	}
	return in, text.users, true
}

// unchanged reports whether an edit left what people wrote as it was: Slack reports link previews and
// new replies like edits.
func unchanged(m, before *event) bool {
	return before != nil && m.Subtype != "tombstone" && m.Text == before.Text && len(m.files()) == len(before.files())
}

// deletion is the message that was removed.
func deletion(e event, ts string) event {
	m := event{TS: ts}
	if e.Previous != nil {
		m = *e.Previous
		m.TS = ts
	}
	return m
}

func readable(subtype string) bool {
	switch subtype {
	case "", "file_share", "thread_broadcast", "me_message", "bot_message":
		return true
	}
	return false
}

// own reports whether the bot itself wrote a message.
func (b *inbox) own(m event) bool {
	return b.self.user != "" && m.User == b.self.user || b.self.bot != "" && m.Bot == b.self.bot
}

// address returns where a message was written, and whether the bot is to listen there.
func (b *inbox) address(conversation, channelType string, m event) (chat.Address, bool) {
	a := chat.Address{Channel: Channel, Account: b.deps.Account, Conversation: conversation, Kind: b.kind(conversation, channelType)}
	if m.Thread != m.TS {
		a.Thread = m.Thread
	}
	return a, conversation != "" && (a.Kind != chat.Group || b.cfg.DM.GroupEnabled)
}

// separate marks a thread of the assistant view.
func (b *Bot) separate(ctx context.Context, a *chat.Address) (err error) {
	if a.Kind == chat.Direct && a.Thread != "" {
		a.Separate, err = b.roots.has(ctx, a.Conversation, a.Thread)
	}
	return err
}

// kind returns the kind of a conversation. Mentions and slash commands do not tell it; then it is the
// one that messages from there, or Slack when it was asked, have told. Else it is a room.
func (b *Bot) kind(conversation, channelType string) chat.Kind {
	if k := kindOf(channelType); k != "" {
		return k
	}
	if strings.HasPrefix(conversation, "D") {
		return chat.Direct
	}
	known, _ := b.kinds.get(conversation)
	if k := kindOf(known); k != "" {
		return k
	}
	return chat.Room
}

// slackbot is the user id of Slack's own bot.
const slackbot = "USLACKBOT"

func (b *inbox) sender(m event) chat.Sender {
	s := chat.Sender{ID: m.User, Bot: m.Bot != "" || m.Subtype == "bot_message" || m.User == slackbot}
	if s.ID == "" {
		s.ID = m.Bot
	}
	if s.Name = b.names.get(s.ID); s.Name == "" && s.Bot {
		s.Name = plainName(m.Username)
	}
	return s
}

// key sets by what an event is known: its own id, and the message's, because Slack tells a mention
// twice under different ids. Each version of a message is an event of its own.
func (b *inbox) key(in *chat.Inbound, m event, o outer) {
	message := b.messageKey(in.Address.Conversation, m.TS)
	switch {
	case in.Deleted:
		message += ":deleted"
	case in.Edited:
		message += ":" + m.Edited.TS
	}
	in.EventKey = message
	if o.EventID == "" { // history has none
		return
	}
	in.EventKey = b.eventKey(in.Space, o.EventID)
	if !in.Edited || m.Edited.TS != "" {
		in.AltKeys = []string{message}
	}
}

// eventKey identifies a delivery. Two accounts may be in one workspace, and each gets its own.
func (b *Bot) eventKey(team, id string) string {
	if b.deps.Account != "" {
		return Channel + "/" + b.deps.Account + ":" + team + ":" + id
	}
	return Channel + ":" + team + ":" + id
}

// messageKey identifies a message. The team is the app's own: events from shared channels may name
// another one, history none.
func (b *inbox) messageKey(conversation, ts string) string {
	return b.eventKey(b.self.team, conversation+":"+ts)
}

// answers reports whether a message is a reply in a thread that the bot began. Threads in which it
// has only answered, and words that stand for its name, are the inbound pipeline's concern.
func (b *inbox) answers(m event, a chat.Address) bool {
	return *b.cfg.ImplicitMentions.ReplyToBot && a.Kind != chat.Direct && a.Thread != "" && m.Parent != "" && m.Parent == b.self.user
}

func (b *inbox) reader() reader {
	return reader{self: b.self.user, name: func(user string) string {
		if user == b.self.user {
			return b.self.name
		}
		return b.names.get(user)
	}}
}

// forwarded is the text of a message that was shared with this one, and who wrote it.
func forwarded(m event) (text string, from chat.Sender) {
	for _, s := range each[shared](m.Attachments) {
		if !s.Share && !s.Unfurled {
			continue
		}
		if s.Text == "" {
			s.Text = s.Fallback
		}
		from = chat.Sender{ID: s.Author, Name: plainName(s.AuthorName)}
		if s.Author == "" {
			from.ID, from.Bot = s.Bot, s.Bot != ""
		}
		return strings.TrimSpace(reader{name: func(string) string { return "" }}.read(s.Text).text), from
	}
	return "", chat.Sender{}
}
