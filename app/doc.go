// Package app puts the rooms of the house together: it opens the databases, connects the channels,
// wires what one room needs of another, and brings everything down in order. It can be embedded:
// tests start a whole bot on free ports (Options.Listen "127.0.0.1:0").
//
//	Run:  recover outbox ─► recover journal ─► channels ─► ready
//	stop: intake ends ─► turns drain ─► deliveries drain ─► databases close
//
// The verbs of the command line live here too; cmd/bot only parses flags.
package app
