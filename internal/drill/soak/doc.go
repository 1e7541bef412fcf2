// Package soak lets people write to a whole bot on Slack, Discord and Telegram for a long time while
// everything around it goes wrong by chance, and checks what must hold however it comes:
//
//   - every message is answered once, or its sender is told that it was not;
//   - the answer is whole, in the conversation and the thread of the question, and no other answer
//     stands between its parts;
//   - answers come in the order in which the model was asked;
//   - the bot has as many goroutines in a calm at the end as in one at the beginning.
//
// The emulators speak the real protocols to the real SDKs. What goes wrong: calls are lost before or
// after they are done, are slow, are refused with 429 and 5xx; connections are cut, silent, asked to
// reconnect, their sessions invalid; events come twice or in another order; models are limited,
// overloaded, mute, cut off or talk garbage.
//
// One excuse is accepted, and counted. Slack and Telegram cannot be asked whether a message whose receipt was lost
// has arrived, and the bot does not say things twice (spec/chat.md §2.10). So an answer may be missing
// whose sending reached the platform and was lost there.
//
// Everything that is left to chance comes from one seed. Two runs of a seed do the same as far as
// the timing of the machine allows.
package soak
