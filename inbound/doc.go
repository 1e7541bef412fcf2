// Package inbound decides what becomes of a message before a turn begins for it.
//
//	adapter ─ Accept ─► known? ─► may they? ──► for the bot? ──► journal ─► more to come? ─► Handler
//	                      │          │                │                          │ the rest of an album,
//	                      └► nothing │                └► context of the next     │ the next text of the
//	                                 │                   message that is         └ same person
//	                                 └► refused, pairing: only the event's key is kept; nothing of a
//	                                    stranger is stored, fetched or spent on
//
// Accept returns nil once the event is safe in the journal, so that the adapter may acknowledge
// it. From there on the message is answered, or its sender is told that it was not:
//
//	received ─ Dispatched ─► dispatched ─ Done ──► done
//	    │                        │
//	    └────── Failed ──────────┴──► failed ── after many attempts ──► dead ─ Resubmit ─► received, anew
//
// Messages that are answered as one are rows of one group in the journal and go through these states
// together. A message that is deleted before its turn is done without one. Recover takes up what an
// earlier process left in the first two states (spec/chat.md §7.8).
package inbound
