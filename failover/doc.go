// Package failover runs the requests of one turn against the models that may answer it. It does
// what package policy decides and tells the store what came of it; it decides nothing itself.
//
//	Begin ──► Run ──Ask──► policy.Next ─ Try ──► llm.Client ── events ──► Host.Text
//	                          ▲  │ Skip/Wait/Stop/Exhausted      │
//	                          │  ▼                               ▼ *llm.Error
//	                        Record ◄── Store.Settle ◄────────────┘
//
// A Run lives for one turn. Each model request of the turn's agent loop is one Ask; what an earlier
// Ask did (a tool that ran, text that left) binds the later ones (spec/failover.md §8.1).
package failover
