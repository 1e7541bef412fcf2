// Package mcp connects to the tool servers an operator configures: programs that speak the Model
// Context Protocol over their standard input and output, or over streamable HTTP.
//
//	start ─► connecting ─► ready ─► (list changed: ask again) ─► lost ─► back-off ─┐
//	             ▲                                                                 │
//	             └──────────────────── a call, or the end of the wait ◄────────────┘
//
// Each server has one goroutine, which owns its connection and its process. What the tools are is a
// snapshot: building a prompt waits for nobody, and a server that is away for a moment does not change
// the beginning of every conversation's prompt.
//
// A call is made once. If its connection breaks, the model is told so; nobody knows what the server
// did, so nothing is repeated (spec/chat.md §12 D18). What servers say about their tools, and what
// their tools answer, is strangers' text: bounded here, framed as untrusted by whoever shows it.
package mcp
