// Package tts speaks answers (spec/chat.md §4).
//
//	Merge        the settings of everybody, an agent, a channel, an account → one policy
//	Foresee      what is known of an answer's speech before there is an answer
//	Plan         the model's words → what is shown, and what is said aloud or nil
//	Stripper     the same cut for text that still arrives in pieces
//	Speaker      what is said aloud → sound: one provider after the other
//	Store        what people chose with /tts
//
// The first three are pure.
//
// Only classes that chat.Class calls speakable ever become sound, and only the model's own words: the
// plan is made before prefix and footer are added, and notices, errors and replies to commands never
// come here. When nobody can speak, an answer is text; a turn never fails because of its sound.
//
// The providers are the children of this package: tts/openai for everything that speaks OpenAI's audio
// API, tts/command for programs on this machine.
package tts
