// Package cron runs tasks that nobody asked for at the moment they run: it keeps the jobs people
// scheduled, finds out when they are due, runs each slot at most once, and sees to it that the result
// arrives (spec/chat.md §5). What a job does and how a text reaches a platform is the business of a
// Runner and an Announcer that app brings; when a job is due is decided in cron/schedule and Due.
//
//	            slot comes, place in the lane                    Runner returns
//	waiting ───────────────────────────────► running ─────────────────────────► settled ─► waiting, off, gone
//	   ▲   claim: run, next slot: one commit     │          one commit: status,     │
//	   │                                         │          next run, letters       ▼
//	   └── nobody was there: missed              └── process gone: interrupted    letters: result, alerts, owner
//
// Every arrow is one transaction, and whoever changes a job compares what it was, so that neither a
// restart at any moment nor a second process runs a slot twice. A run that was interrupted is not
// repeated, because what it did is unknown; it is recorded. What is to be said is stored with the
// decision to say it, and handed over under a key that makes a second try harmless, until it is known
// whether it arrived: delivery is never retried through the model.
//
// One goroutine looks at the clock and decides: when robfig/cron wakes it for the next run of some
// job, when a job was changed, and every 30 seconds, because the library does not see a clock that is
// set or a machine that slept. Runs have a goroutine each, at most four at a time.
package cron
