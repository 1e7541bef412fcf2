// Package signin signs a person in at a provider (RFC 6749, RFC 7636, RFC 8252, RFC 8628).
//
//	Browser: page ──redirect──► loopback listener ─┐
//	Paste:   page ──redirect──► a person pastes it ─┼─ code + PKCE verifier ──► token endpoint ──► Account
//	Device:  page with a code ◄── polled ───────────┘
//
// What comes back is an Account, ready to be stored as a profile. Errors hold no code, token or text
// of a server.
package signin
