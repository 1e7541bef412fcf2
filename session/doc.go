// Package session keeps conversations: who talks where, with which model selected, what was said,
// and that only one turn at a time runs in each (spec/chat.md §1).
//
// A key names the conversation and never changes; the id under it names the present transcript and
// changes with every reset. Rows are changed field by field or inside one transaction: nobody ever
// writes back a row that he read earlier, so a /model given while a turn runs survives its end.
//
// Lanes is the other half: a queue per key, at most one run per key.
package session
