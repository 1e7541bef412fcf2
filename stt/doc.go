// Package stt writes down what is said in voice notes (spec/chat.md §4.6), with a service that has
// OpenAI's audio API or with a program on this machine.
//
// Whoever calls it has authorised the sender and loaded the file. What comes back was written by a
// machine from a stranger's voice: it is material for a model, framed by package reply, and never an
// instruction to us.
package stt
