//go:build race

package simulate_test

// randomDrills is how many random scenarios a test run plays; the race detector makes each ten
// times as slow.
const randomDrills = "8"
