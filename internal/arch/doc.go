// Package arch holds the rules of the house as tests: which room may import which, what pure code
// must not touch, and a few habits that reviews would otherwise have to repeat. It has no code of
// its own. Each rule says why it is there, and a table of mutations shows that each can fail.
//
// ARCHITECTURE.md draws the house; rooms_test.go is its plan in a form a machine can check. A room
// that is not in the plan is an error, so a new package begins with a line there.
package arch
