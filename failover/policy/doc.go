// Package policy decides what a turn does when a model, a key or a provider fails. It is pure:
// state in, decision out, and time is an argument. It implements spec/failover.md §3 to §9.
//
//	selection ──Chain──► candidates ──┐
//	profiles ──Order──► who goes first├─► RunState ──Next──► Try | Skip | Wait | Stop | Exhausted
//	health rows, probe throttle ──────┘        ▲                    │
//	     ▲                                     └──── Record ◄───────┤ what the runner saw
//	     └────────────────── Settle ◄───────────────────────────────┘ what it costs the profile
//
// The runner (package failover) does what Next says, records what came of it, and asks again. Every
// decision carries a Why, which is also the log field and the metric label.
package policy
