// Package gateway is the bot's door to the machine it runs on: the HTTP listener with the owner's
// chat page, health and metrics, and the Unix control socket of the command line.
//
// Every request passes one guard before it reaches a route (spec/chat.md §12 D13):
//
//	Host known? ──no──► 421            a foreign name that resolves to us (DNS rebinding)
//	   │
//	same origin? ─no──► 403            a foreign page, or one from another port of this machine
//	   │
//	access: Public ───────────────────► route     health
//	        Local  ── loopback or bearer token ─► metrics
//	        Owner  ── cookie or bearer token ───► chat, status
//
// The cookie comes from the printed URL, whose token only the owner has seen. The socket asks the
// kernel who is calling instead (spec/chat.md §8 S16).
//
// What this does not promise: cookies know no ports. A server that another user of the same machine
// runs, and that the owner opens in the same browser under the same host name, is sent the cookie
// by the browser. A new gateway.token, or a new Deps.CookieKey, makes every cookie worthless.
package gateway
