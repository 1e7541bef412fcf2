package delivery

import (
	"fmt"

	"understudy/chat"
)

// Settings are what configuration says about one channel account (spec/chat.md §2.1).
type Settings struct {
	ReplyTo Mode // `replyToMode`
	// ReplyToByKind is `replyToModeByChatType`: it wins for the kinds of conversations it names.
	ReplyToByKind map[chat.Kind]Mode
	Previews      bool // `streaming.mode: partial`; needs a channel whose messages can be edited
	// Progress is `streaming.mode: progress`: a preview shows what the turn does and not what it says. It
	// needs Previews.
	Progress bool
	// NativeStream is `streaming.nativeTransport`: a preview grows on the platform's side where the
	// channel is a channels.Streamer. It needs Previews.
	NativeStream bool
	Typing       Typing // `typingMode`; needs a channel that can show it
	TextLimit    int    // `textChunkLimit`, UTF-16 units; 0 = the channel's own limit, which always binds
	Newline      bool   // `streaming.chunkMode: newline`

	// AckReaction is put on a message that is being worked on, and taken away when its turn has
	// ended; "" = none. It and the reactions below need a channel that is a channels.Reactor.
	AckReaction string
	// AckScope says on which messages AckReaction and StatusReactions are put.
	AckScope Scope
	// StatusReactions replace each other on the message while its turn goes on.
	StatusReactions StatusReactions
	// TypingReaction stands for the typing sign where one is wanted and the channel has none.
	TypingReaction string
}

// Typing is `typingMode`: from when on people see that the bot works on a message.
type Typing string

// The values of Typing. The zero Typing is TypingNever.
const (
	TypingNever    Typing = "never"
	TypingInstant  Typing = "instant"  // from Begin on
	TypingThinking Typing = "thinking" // from Turn.Working on
	TypingMessage  Typing = "message"  // from the first visible text on
)

// wanted reports whether there is to be a sign at all.
func (t Typing) wanted() bool { return t != "" && t != TypingNever }

// Validate reports an unknown value.
func (t Typing) Validate() error {
	switch t {
	case "", TypingNever, TypingInstant, TypingThinking, TypingMessage:
		return nil
	}
	return fmt.Errorf("typingMode: %q is none of never, instant, thinking, message", string(t))
}

// StatusReactions are the emojis for what becomes of a message; an empty one shows nothing of its
// own. Done and Failed stay.
type StatusReactions struct{ Queued, Working, Done, Failed string }

// Scope is `ackReactionScope`: which messages get reactions.
type Scope string

// The scopes. The zero Scope is ScopeGroupMentions.
const (
	ScopeGroupMentions Scope = "group-mentions" // mentions of the bot, outside of direct chats
	ScopeDirect        Scope = "direct"
	ScopeGroupAll      Scope = "group-all"
	ScopeAll           Scope = "all"
	ScopeOff           Scope = "off"
)

// Validate reports an unknown scope.
func (s Scope) Validate() error {
	switch s {
	case "", ScopeGroupMentions, ScopeDirect, ScopeGroupAll, ScopeAll, ScopeOff:
		return nil
	}
	return fmt.Errorf("ackReactionScope: %q is none of group-mentions, direct, group-all, all, off", string(s))
}

// markable reports whether a message can carry reactions. The reply to an interaction has none to react to.
func markable(in *chat.Inbound) bool { return in != nil && in.ID != "" && in.Via == "" }

// holds reports whether a message is in the scope.
func (s Scope) holds(in *chat.Inbound) bool {
	if !markable(in) {
		return false
	}
	direct := in.Address.Kind == chat.Direct
	switch s {
	case ScopeAll:
		return true
	case ScopeDirect:
		return direct
	case ScopeGroupAll:
		return !direct
	case "", ScopeGroupMentions:
		return !direct && in.Mentioned
	}
	return false
}

// Validate reports a value that is not one of its kind.
func (s Settings) Validate() error {
	if err := s.ReplyTo.Validate(); err != nil {
		return err
	}
	for kind, m := range s.ReplyToByKind {
		if err := m.Validate(); err != nil {
			return fmt.Errorf("replyToModeByChatType.%s: %w", kind, err)
		}
	}
	if err := s.Typing.Validate(); err != nil {
		return err
	}
	return s.AckScope.Validate()
}

// mode returns the reply mode for a kind of conversation.
func (s Settings) mode(k chat.Kind) Mode {
	if m, ok := s.ReplyToByKind[k]; ok {
		return m
	}
	return s.ReplyTo
}
