// Package config turns one YAML file and the environment into one validated Config.
//
// It is strict: an unknown key, a wrong type or an impossible number is an error that names file,
// line, column and key, and proposes what was probably meant; as many problems as possible are
// reported at once. Secrets are references that are resolved while loading; one that cannot be
// resolved switches off the channel or provider it belongs to, not the bot.
//
//	bytes ──parse──► syntax tree ──decode──► sections (as written) ──resolve──► Config
//	                                │              │                    │
//	                                └── Problem ◄──┴──── Warning ◄──────┘   each with its position
//
// A Config is never changed after it was made. A Watcher builds a new one when the file changes and
// hands it over; whoever holds the old one keeps a consistent view (spec/failover.md §2,
// spec/chat.md §7.6).
package config
