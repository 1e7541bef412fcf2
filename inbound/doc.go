// Package inbound decides what becomes of a message before a turn begins for it.
//
//	adapter ─ Accept ─► known? ─► may they? ──► journal ─► addressed? ─► Handler
//	                      │          │ refused, pairing: only the event's key is kept
//	                      └► nothing └► nothing of a stranger is stored, fetched or spent on
//
// Accept returns nil once the event is safe in the journal, so that the adapter may acknowledge
// it. From there on the message is answered, or its sender is told that it was not:
//
//	received ─ Dispatched ─► dispatched ─ Done ──► done
//	    │                        │
//	    └────── Failed ──────────┴──► failed ── after many attempts ──► dead
//
// Recover takes up what an earlier process left in the first two states (spec/chat.md §7.8).
package inbound
