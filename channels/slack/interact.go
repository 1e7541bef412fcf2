package slack

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// slash passes a slash command on. "/bot status" is the command /status, and "/bot" alone asks for
// help. Slack runs no slash commands in threads, so it acts on the channel.
func (b *inbox) slash(ctx context.Context, s slash) error {
	if s.User == "" || s.Channel == "" {
		b.unreadable(kindSlash, errors.New("without user or channel"))
		return nil
	}
	b.names.put(s.User, s.UserName)
	handle := b.vias.put(via{address: s.ResponseURL, user: s.User, conversation: s.Channel, until: time.Now().Add(responseLife)})
	if b.unplacedSlash(s) { // other rules hold among a few people than in a channel
		if err := b.learnPlace(ctx, s.Channel); err != nil {
			b.log.Warn("it is not known what kind of conversation a command is from", "error", err)
			text := textNotStored
			var e *callError
			if errors.As(err, &e) && e.code == "channel_not_found" { // the bot is no member
				text = textNoGroups
			}
			b.answer(private{via: handle, text: text})
			return nil
		}
	}
	a := chat.Address{Channel: Channel, Account: b.deps.Account, Conversation: s.Channel, Kind: b.kind(s.Channel, "")}
	switch {
	case s.ChannelName == "directmessage":
		a.Kind = chat.Direct
	case strings.HasPrefix(s.ChannelName, "mpdm-"):
		a.Kind = chat.Group
	}
	if s.ChannelName != privateGroup && s.ChannelName != "" && a.Kind == chat.Room {
		b.names.put(s.Channel, s.ChannelName)
	}
	if a.Kind == chat.Group && !b.cfg.DM.GroupEnabled {
		b.answer(private{via: handle, text: textNoGroups})
		return nil
	}
	return b.asked(ctx, handle, chat.Inbound{
		EventKey:  b.eventKey(s.Team, s.Trigger),
		Address:   a,
		Sender:    chat.Sender{ID: s.User, Name: b.names.get(s.User)},
		Text:      b.commandText(s),
		Mentioned: true,
		At:        time.Now().UTC(),
		Space:     s.Team,
		Title:     b.title(a),
		Via:       handle,
	})
}

// commandText is what a slash command stands for. A command of another name is the bot's own one,
// when the operator has put it into the app's manifest: /status is Slack's, hence /agentstatus.
func (b *Bot) commandText(s slash) string {
	text := b.readArguments(s.Text)
	name := strings.ToLower(strings.TrimPrefix(s.Command, "/"))
	switch {
	case name == b.cfg.SlashCommand.Name || !b.cfg.Commands.Native:
		if text == "" {
			text = "help"
		}
		return "/" + strings.TrimPrefix(text, "/")
	case name == "agentstatus":
		name = "status"
	}
	return strings.TrimSpace("/" + name + " " + text)
}

func (b *Bot) readArguments(text string) string {
	return reader{name: b.names.get}.read(text).text
}

// Texts for people who used a command or a button.
const (
	textNoGroups  = "This channel is not allowed."
	textNotStored = "⚠️ That did not reach me. Please try again."
)

// act passes the command of a pressed button on, as if the person who pressed it had sent it.
func (b *inbox) act(ctx context.Context, i interaction) error {
	conversation := i.Channel.ID
	if conversation == "" {
		conversation = i.Container.Channel
	}
	if i.Type != "block_actions" || len(i.Actions) == 0 || i.User.ID == "" || conversation == "" {
		return nil // dialogs, shortcuts and their like are not used
	}
	value := i.Actions[0].Value
	if value == "" {
		value = i.Actions[0].Selected.Value
	}
	name := i.User.Name
	if name == "" {
		name = i.User.Username
	}
	b.names.put(i.User.ID, name)
	handle := b.vias.put(via{
		address: i.ResponseURL, user: i.User.ID, conversation: conversation, until: time.Now().Add(responseLife), replace: i.Container.Ephemeral,
	})
	menu, choice, err := b.menu(ctx, value)
	switch {
	case errors.Is(err, channels.ErrExpired):
		b.answer(private{via: handle, text: channels.TextExpired})
		return nil
	case err != nil:
		return err
	case !menu.Allows(conversation, i.User.ID):
		b.answer(private{via: handle, text: channels.TextOthers, beside: true})
		return nil
	case choice == cancelChoice:
		b.answer(private{via: handle, remove: true})
		return nil
	}
	n, err := strconv.Atoi(choice)
	if err != nil || n < 0 || n >= len(menu.Buttons) {
		b.answer(private{via: handle, text: channels.TextExpired})
		return nil
	}
	return b.asked(ctx, handle, chat.Inbound{
		ID:        i.Container.Message,
		EventKey:  b.eventKey(i.Team.ID, i.Trigger),
		Address:   menu.To,
		Sender:    chat.Sender{ID: i.User.ID, Name: b.names.get(i.User.ID)},
		Text:      menu.Buttons[n].Command,
		Mentioned: true,
		At:        time.Now().UTC(),
		Space:     i.Team.ID,
		Title:     b.title(menu.To),
		Via:       handle,
	})
}

// menu finds the menu that a button belongs to, and the choice it stands for.
func (b *Bot) menu(ctx context.Context, value string) (channels.Menu, string, error) {
	token, choice, ok := strings.Cut(value, ":")
	if !ok || token == "" || len(token) > longestToken {
		return channels.Menu{}, "", channels.ErrExpired
	}
	m, err := b.deps.Menus.Get(ctx, token)
	return m, choice, err
}

// asked gives an interaction to the sink and tells the person when it is refused.
func (b *inbox) asked(ctx context.Context, handle string, in chat.Inbound) error {
	err := b.sink.Accept(ctx, in)
	var no *channels.Refusal
	if errors.As(err, &no) {
		b.answer(private{via: handle, text: no.Text, beside: true})
		return nil
	}
	return err
}

// ackLimit is when an interaction is acknowledged though it is not stored yet: after three seconds
// Slack shows an error to the person, who then does it again.
const ackLimit = 2500 * time.Millisecond

// receive takes one payload and calls ack, once, when it is dealt with. An interaction is acknowledged
// in time even when storing it takes longer; should it turn out not to be stored then, the person is
// told. An error means that it must come again.
func (b *inbox) receive(ctx context.Context, kind string, payload []byte, ack func()) error {
	if kind != kindSlash && kind != kindInteractive {
		err := b.take(ctx, kind, payload)
		if err == nil {
			ack()
		}
		return err
	}
	timer := time.AfterFunc(ackLimit, ack)
	err := b.take(ctx, kind, payload)
	late := !timer.Stop()
	if err == nil || late {
		ack() // waits for the one that is under way
	}
	if err != nil && late {
		b.apologise(kind, payload)
	}
	return err
}

// apologise tells a person that what they did was lost.
func (b *inbox) apologise(kind string, payload []byte) {
	v := via{until: time.Now().Add(responseLife)}
	var s slash
	var i interaction
	if kind == kindSlash && decode(payload, &s) == nil {
		v.address, v.user, v.conversation = s.ResponseURL, s.User, s.Channel
	} else if decode(payload, &i) == nil {
		v.address, v.user, v.conversation = i.ResponseURL, i.User.ID, i.Channel.ID
	}
	b.answer(private{via: b.vias.put(v), text: textNotStored, beside: true})
}
