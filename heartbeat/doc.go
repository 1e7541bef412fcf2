// Package heartbeat is what the bot does unasked: the five-minute job that finds out whether a model
// that others stand in for is back, and the rules for the model of a heartbeat turn.
//
//	every 5 min ─► sessions that fell back ─► distinct (agent, model) ─► failover.Probe, one each
//	                                                                        │ back
//	             legacy automatic overrides of that origin are cleared ◄────┘
//
// A probe never uses a person's words and never runs in a session's lane. Nobody is told by it: the
// notice that the lead is back goes out with the session's next turn (spec/chat.md §12 D9).
package heartbeat
