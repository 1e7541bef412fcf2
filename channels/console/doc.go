// Package console is the channel behind `bot chat`: a conversation in a terminal, or line in and
// answer out when piped.
//
// The terminal and the bot may be one process or two. A Link is the line between them: an Adapter
// gives out Links in its own process, and Dial opens one to the Adapter of a running bot over the
// control socket (spec/chat.md §7.8).
//
//	Terminal ─┐                       ┌─ Adapter (streaming) ─┐
//	          ├─ Link: Say, Events ───┤                       ├─ the bot
//	Pipe ─────┘                       └─ Adapter (whole)  ────┘
//
// What was printed into a pipe cannot be taken back, so there is an account of the channel whose
// answers arrive whole (AccountWhole) beside the one whose answers grow (the default account).
package console
