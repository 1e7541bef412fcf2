// Package oauth emulates a sign-in server for tests: authorisation with PKCE, a token endpoint with
// rotating refresh tokens and reuse detection, the device flow and revocation, over loopback or an
// in-memory network.
//
// It is strict where real servers are: a code works once and only for who asked for it; a refresh
// token that was spent revokes every token of its sign-in.
package oauth
