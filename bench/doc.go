// Package bench measures the product: how long the bot itself takes for a turn, how many turns it
// carries, and what an outage with many people writing costs. It holds benchmarks only; what they
// measured is in docs/benchmarks.md, and no test depends on a number here.
package bench
