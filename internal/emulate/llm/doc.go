// Package llm is an emulator of model APIs: real wire formats, scripted answers, scripted faults.
//
// A Server speaks OpenAI's Chat Completions and Responses and Anthropic's Messages, streamed and
// not, and Amazon Bedrock's stream of the latter. It listens nowhere by itself. In a test it is reached without a network, under any host
// name, which works inside testing/synctest bubbles too:
//
//	srv := llm.New()
//	defer srv.Close()
//	srv.Fault(llm.Fault{Match: llm.Match{Model: "a1", Times: 2}, Status: 429, RetryAfter: 7 * time.Second})
//	srv.Reply(llm.Reply{Match: llm.Match{Model: "b1"}, Text: "hello from b1"})
//	client := &http.Client{Transport: srv.Transport()}
//
// Over a socket it is an http.Handler for httptest.NewServer or any other.
//
// Of the faults, and then of the replies, the first whose Match fits a request answers it, in the
// order in which they were added; a request that none fits is answered "ok".
package llm
