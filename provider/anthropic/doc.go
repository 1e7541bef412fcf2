// Package anthropic asks the Anthropic Messages API and hosts that speak it, through the official
// SDK.
//
// The SDK builds requests and cuts the response into server-sent events. What those events mean is
// decided here, because the SDK's own stream skips events without a name and takes a stream that
// ends early for a success:
//
//	message_start … content_block_start/delta/stop … message_delta … message_stop   an answer
//	anything else, however it ends                                                  a failure
//
// Text leaves as it arrives. Tool calls leave only once message_stop has come, so that half an
// answer never starts a tool; see answer.
package anthropic
