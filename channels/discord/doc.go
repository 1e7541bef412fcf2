// Package discord connects one Discord bot account (spec/chat.md §2.8).
//
// What happens on Discord arrives over the gateway, in one order, and is worked on in that order:
//
//	          ┌───────────────────────────── supervisor ─────────────────────────────┐
//	dial ─► HELLO ─► IDENTIFY / RESUME ─► READY / RESUMED ─► events ─► … ─► end ─► back-off
//	                                          │                │
//	                                     catch-up task         ▼
//	                                          └──────► one bounded queue ─► one worker ─► Sink.Accept
//
// Discord says an event once, and again only to a RESUME. So the worker repeats an event that the
// sink did not store and holds up the ones behind it; when the queue is full the connection is given
// up and later resumed behind the last event in the queue, so that Discord keeps the rest. A new
// session (READY) loses what was said in between: then, and at the start, conversations in which the
// bot was active are looked into over REST.
//
// The library discordgo serves as REST transport and for the addresses of the API. Its gateway is not
// used: a request to reconnect that comes before READY makes its Open wait for itself for good, a
// frame "null" ends the process, and an invalid session is answered without a pause. Its rate limiter
// sleeps where nobody can cancel it, so every request gets one of its own, and the limits that
// Discord states are kept here (spec/chat.md §9.1).
package discord
