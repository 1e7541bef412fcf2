// Package budget keeps two purses: what work that nobody asked for may use in a day (scheduled tasks,
// heartbeats, probes), and what models that stand in for others may cost in a day.
//
// Days are those of the configured zone. A price that is not known is unknown, never nothing: see
// Background and Fallback for what follows from that. What is under way when a purse is empty ends as
// usual, so a day may come out a little dearer than its limit.
package budget
