package chat

// Kind is the kind of conversation a message belongs to.
type Kind string

// The kinds of conversations (spec/chat.md §1.1).
const (
	Direct Kind = "direct"  // one person
	Group  Kind = "group"   // Telegram group, Slack MPIM, Discord group DM
	Room   Kind = "channel" // Slack channel, Discord guild channel
)

// Address says where a message came from and where its answer goes. All ids are opaque: only the
// adapter of Channel parses them, and nobody rebuilds an address from a session key.
type Address struct {
	Channel      string `json:"channel"`           // "telegram", "web", "console", …
	Account      string `json:"account,omitempty"` // the bot account; "" = default
	Conversation string `json:"conversation"`
	Thread       string `json:"thread,omitempty"` // thread or topic; "" = none
	Kind         Kind   `json:"kind"`
	// Separate tells that the thread is a conversation of its own although threads of such chats
	// usually are a way of showing things (Slack's assistant view).
	Separate bool `json:"separate,omitempty"`
}

// Destination identifies the ordered queue that outbound traffic to it belongs to: everything to
// one (channel, account, conversation, thread) leaves in order (spec/chat.md §2.10).
func (a Address) Destination() string {
	return a.Channel + "\x00" + a.Account + "\x00" + a.Conversation + "\x00" + a.Thread
}

// Sender is who wrote a message. Name is what the person calls themselves: never a permission.
type Sender struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	Bot  bool   `json:"bot,omitempty"`
	// Local tells that the transport itself proved the sender to be the owner of the machine
	// (console, web page with its cookie, control socket).
	Local bool `json:"local,omitempty"`
	// Anonymous tells that no person is named: an anonymous administrator, or a channel's post. ID is
	// then that of a group or channel, behind which anybody with its rights may stand, so that only
	// an explicit listing of it admits the message.
	Anonymous bool `json:"anonymous,omitempty"`
	// Self tells that it is the bot itself, as the author of what somebody quotes or of what was said before.
	// What it said is no stranger's. Adapters set it by the platform's own ids.
	Self bool `json:"self,omitempty"`
}
