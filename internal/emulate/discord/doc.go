// Package discord is a Discord server for tests, golden conversations and benchmarks: REST and
// gateway of API version 9, and the file host.
//
// It speaks the real wire protocol and is as strict as the real server where bots get it wrong: the
// life of a gateway session (hello, heartbeats, identify with intents, resume with replay, invalid
// sessions, close codes), lengths, nonces, references, mentions, components, threads and forums,
// archived threads, interactions with their three seconds and fifteen minutes, rate limits. A test
// drives the people (UserSays, Press, RunCommand, …), scripts faults (Inject, InjectGateway and the
// methods on the connection) and reads what happened (Messages, Calls, Interaction), waiting without
// polling (WaitFor).
//
// The server can be reached through Transport and Dial over in-memory connections, which also work
// inside a testing/synctest bubble, or on loopback after Listen.
package discord
