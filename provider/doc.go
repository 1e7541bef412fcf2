// Package provider knows the model APIs that a model reference can name.
//
// A Registry is built from configuration and the built-in definitions; it hands out one llm.Client
// per provider, made by the Factory of its API family. The families live in sub-packages, which
// import this package for what all of them share and is decided once:
//
//	Recorder   keeps what a response said (status, headers, error body), because SDKs lose it
//	Spec.Fail  turns whatever ended an attempt into a classified *llm.Error
//	Replay     makes any transcript acceptable to any target (spec/failover.md §8.1)
//
// Nothing here waits, retries or chooses: one call of Client.Stream is one attempt.
package provider
