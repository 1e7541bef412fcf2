// Package commands is the one registry of slash commands: what they are called, who may use them,
// and what they do. Text messages, native menus, completion, /help and docs/commands.md all come
// from it (spec/chat.md §3).
//
//	text ─Match─► Invocation ─Run─► Reply
//	  └──Extract─► directives ─Apply─► what holds for this message
//	         ├───► shortcuts ─Run─► Reply
//	         └───► the rest, for the model
//
// The caller guarantees that the sender is admitted at all; the registry decides what is the owner's
// alone, and what is not shown to others in a group. Commands that change the conversation
// (Spec.Lane) are to be run in its lane, before what waits there. A command that refuses has changed
// nothing. What a command needs of another part of the bot is an interface of its own (Deps); where that
// part is missing, so is the command.
package commands
