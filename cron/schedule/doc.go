// Package schedule says when a job is due: once at a moment, every so often, or by a cron
// expression in a time zone (spec/chat.md §5.2). It is pure: what the time is comes in as an
// argument, and the same question always has the same answer.
//
//	text a person typed ──Parse──► Schedule ◄──Compile── Spec, as it is stored
//	                                  │
//	                  Next(after), Upcoming(after, n), Describe()
//
// Clocks are changed twice a year in many places. A schedule with fixed hours means wall time: one
// that falls into the hour that is left out happens at the first moment after it, one that falls
// into the hour that comes twice happens in the first of the two. A schedule with wildcard hours
// means intervals, and simply goes on.
package schedule
