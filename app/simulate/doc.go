// Package simulate is the fire drill of a failover configuration: it plays an outage on a virtual
// clock and shows what every user would have seen (spec/tools.md).
//
// Only the edges are made up: the model APIs (world.go answers what the scenario says, through the
// product's own classification) and the channel (trace.go writes down what would be delivered).
// Between them runs the product itself: session lanes, commands, reply, failover, notices, and the
// two databases, in a temporary directory.
package simulate
