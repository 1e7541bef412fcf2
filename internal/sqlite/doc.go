// Package sqlite opens the bot's database files.
//
// A DB is one file with one writer and a pool of readers. The writer's transactions are immediate,
// because a deferred one that reads and then writes fails at once under load; readers see the last
// committed state and never wait for the writer (spec/chat.md §9.5). The file is born complete: it
// is made under another name, marked as ours, switched to WAL and then linked into place, so that
// no other process ever meets half of it. A file that is not ours, or is damaged, is refused and
// left exactly as it was.
//
// It is the only package that imports the driver. Times are stored as integer milliseconds: a
// time.Time must never reach a statement.
package sqlite
