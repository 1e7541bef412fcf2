// Package reply answers one message: it puts the conversation together, asks the models through
// package failover, runs the tools they call, and hands the answer (or a clear error) to delivery.
//
//	Request ─► load session ─► plan (selection, chain, pin) ─► prompt
//	                                                             │
//	   ┌──────────────── tool results ◄── run tools ◄──┐         ▼
//	   └─► failover.Run.Ask ── calls? ─────────────────┴── text ─► remember ─► notice ─► Finish
//	                        └─ error ─► error text in the place of an answer
//
// Package session guarantees one turn at a time per session key; this package relies on it.
package reply
