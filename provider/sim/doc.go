// Package sim is the built-in offline provider: two models, sim/lead and sim/understudy, that need
// no key and no network.
//
// It lets somebody who has just started the bot see the product work: the models say what they are
// and what to do next, show what reached them, and fail on demand, so that failover can be watched:
//
//	/sim lead rate_limit 60s      sim/lead answers 429 for a minute; the next turn is the understudy's
//	/sim lead ok                  the lead is back
//
// A failure is never a ready-made reason. The model "answers" with the status, headers and body a
// real provider would send, and failover/classify judges them like any other response.
//
// It exists in zero-config runs and where a configuration names it; it joins no chain by itself
// (spec/chat.md §12, D14).
package sim
