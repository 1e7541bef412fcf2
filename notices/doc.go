// Package notices is the one catalogue of what people are told about operations: a model stood in,
// the lead is back, the bot is still trying. It decides whether a change is worth a notice, once
// per change (spec/failover.md §10), and holds the words.
//
// A notice is not part of the conversation. It goes to the place of the answer as chat.Notice, a
// class that can neither take the reply slot nor be spoken nor be remembered.
package notices
