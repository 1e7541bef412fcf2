// Package llm holds the words of the model side: model references, messages, requests, streamed
// events, credentials and failures. Plain types only; it knows no provider and no channel.
package llm
