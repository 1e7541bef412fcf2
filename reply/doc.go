// Package reply answers one message: it puts the conversation together, asks the models through
// package failover, runs the tools they call, and hands the answer (or a clear error) to delivery.
//
//	Request ─► load session ─► what was said ─► plan (selection, chain, pin) ─► prompt
//	                                                                              │
//	     what people say meanwhile ──┐                                            ▼
//	   ┌──────── tool results ◄──────┴── run tools ◄──┐                 (shorten, if too long)
//	   └─► failover.Run.Ask ─────────────── calls? ───┴── text ─► compose ─► remember ─► notice ─► Finish
//	                        └─ error ─► error text in the place of an answer, unless that is not wanted
//
// Three rules run through it. What a tool did is done: from its first call on nobody else takes over
// the turn, and no call is made again. What strangers wrote stands in frames that they could not have
// written. And the beginning of a session's requests stays the same, byte for byte, for as long as a
// provider may remember it: a request is a function of the transcript, the tools and the date, and what
// is added is added at the end.
//
// Package session guarantees one turn at a time per session key; this package relies on it.
package reply
