package channels

import (
	"context"

	"understudy/chat"
)

// Historian is an adapter that can look up what was said in a thread before the bot was called there
// (spec/chat.md §1.7).
type Historian interface {
	// Earlier returns the messages of the thread of an address that came before a message, oldest first
	// and at most the given number: the latest of them. The bot's own are among them, with Sender.Bot.
	// They are context and nothing else: nobody asked whether their authors may talk to the bot, and
	// nothing is to be fetched for them.
	Earlier(ctx context.Context, to chat.Address, before string, most int) ([]chat.Inbound, error)
}
