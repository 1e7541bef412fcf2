// Package slack connects one Slack app in one workspace (spec/chat.md §2.7).
//
// Events arrive over Socket Mode or over signed HTTP requests. Either way an event is acknowledged
// only once the sink has stored it; Slack delivers again what was not acknowledged:
//
//	apps.connections.open ─► WebSocket ─► envelope ─► own decoding ─► Sink.Accept ─► ack
//	        ▲                    │ lost, silent, refreshed      │ error: no ack, it comes again
//	        └── 2 s … 30 s ◄─────┘
//
// slack-go makes the calls and speaks the WebSocket protocol. It is not asked to decode what people
// send: a block or an event it does not know would cost the message, so only the few fields that are
// needed are decoded here. Each run of its client is one connection, and what happens between two of
// them is decided here (spec/chat.md §9.2).
//
// Everything is said in Markdown, which Slack itself turns into its own layout, whatever the class:
// a message has one dialect, and no second renderer has to agree with delivery's. Where Slack refuses
// that (verdict Markups) the plain text is sent, escaped and with formatting off.
package slack
