// Package faults protects against faults that users of comparable bots really met. It holds tests
// only; each is named after the behaviour that must not be lost.
//
//	testdata/scenarios/      outages on the virtual clock of `bot simulate`, with what is expected of the
//	                         trace (expectation in expect_test.go is their language)
//	testdata/conversations/  a whole bot over an emulated channel (package internal/drill)
//	*_test.go                the same where bytes on the wire matter: streams, request bodies, log records
//
// A new fault becomes a file under scenarios whenever the simulator can play it. What stands before
// the first title of a file says why anybody cares.
//
// Some reports ask for something that spec/failover.md settles otherwise. There is a test of what the
// specification says, or none:
//
//	reported wish                                     what holds here
//	a session leaves a metered key as soon as the     an automatic pin stays until /new, a compaction or
//	subscription is back                              a cooldown of its own (§5.3)
//	a time-out rotates once                           every free profile is tried; each is marked (§6.1, §8.2)
//	an only account is probed although its provider   it is left alone until two minutes before the stated
//	said when it is back                              end; the user is told when (§8.3)
//	one sibling of a throttled model, then on         limits are per model: every sibling that is not
//	                                                  limited itself is asked (§6.1)
//	one more try after a 401 with a valid token       `auth`: the next profile or model; 30 s (§6.1)
//	"extra usage for long context" is an overflow     the credential is not entitled: billing, for this
//	                                                  model only (§6)
//	failed steps of a cooldown reset when it ends     the count goes on within failureWindowHours (§7)
//	z.ai, z-ai and zai are one provider               ids are compared without case, nothing else (§1)
//	a missing profile in auth.order is a config       profiles live in the store, which the configuration
//	error                                             does not read (§5.2)
//	models of an included file survive a reload       there are no included files; a reload is whole or
//	                                                  not at all (§2)
package faults
