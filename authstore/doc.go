// Package authstore keeps one agent's credentials and what is known about their health
// (spec/failover.md §5, §7, §13).
//
// Everything stands in one SQLite file, <state>/agents/<id>/agent/openclaw-agent.sqlite, shared by
// all processes on the state directory. The committed state is also held in memory, together with
// attempts that are still on their way to the file, so that a turn reads without asking the disk
// more than "is this still the newest revision?":
//
//	Settle ──► queue ──► one immediate transaction ──► file ──► committed ─┐
//	   │        (read both rows again, rules.Settle,              (revision) ├─► Snapshot
//	   └──► shown at once, whatever the file does ──────────────────────────┘
//
// A write that cannot reach the file is tried again until it does; it never holds a turn for more
// than 250 ms and never changes what a turn decides.
//
// The store of an agent other than the default one reads through to the default agent's: a profile
// that it does not have itself lives there with its health and its tokens.
package authstore
