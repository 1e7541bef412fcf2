// Package delivery brings what the bot says to the people, once and in order.
//
//	reply ── Begin ─► Turn ── Stream, Restart, Notify ──► preview edits, notices   (best effort)
//	                   └───── Finish ──► outbox ──┐
//	commands, cron ── Send ───────────► outbox ───┴─► the destination's worker ─► adapter
//
// Everything to one destination (channel, account, conversation, thread) goes through one queue
// and one goroutine, which exists while the queue has work. So a preview edit, a notice and the
// answer never race, and no notice comes between two messages of one answer.
//
// A durable thing (chat.Class.Durable) is a row of the outbox before its caller goes on:
//
//	pending ── claimed ──► sent
//	   ▲          │ └────► failed    refused by the platform, or too old
//	   └─ not sent┘ └────► unknown   perhaps said: not repeated (spec/chat.md §2.10)
//
// A row is claimed for the length of one platform call only. After a crash a pending row goes on
// where it stopped; a claimed one is repeated where that is harmless (an edit, a channel that drops
// doubles) and is unknown elsewhere.
//
// Previews and notices are not stored; only the id of a standing preview is, so that the next
// start can take it away, and whether it is a native stream, so that it can stop it first.
//
// The first-reply slot (Slot) decides which message of a turn refers to the question or opens a
// thread; testdata/golden shows turns as people see them. Reactions, typing and what speaks an
// answer stand beside the queues: nothing waits for the former, and an answer waits a bounded time
// for its sound (Deps.Speak).
package delivery
