// Package providertest holds the behaviours that every llm.Client of a provider must have, as a
// test suite that runs against the emulator: same scenarios, same outcomes, whatever the wire
// format.
package providertest
