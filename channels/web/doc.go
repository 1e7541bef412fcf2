// Package web is the channel behind the chat page: an adapter whose platform is the owner's own
// browser.
//
// It keeps what the page shows in memory: per session the last messages, and one bounded log of
// changes that every open page follows as a stream of server-sent events. A page that was away
// continues behind the last change it saw, or is told to reload when the log no longer reaches
// back that far. What is older than the process comes from the History that the application wires.
//
//	page ──POST message──► Handler ──► Sink.Accept          (the answer's way in)
//	page ◄──── events ──── board  ◄── Send, Edit, Delete    (the answer's way out)
//
// The Handler trusts its caller completely: it belongs behind a guard that lets only the owner
// through (package gateway; spec/chat.md §12 D13).
package web
