//go:build !race

package simulate_test

// randomDrills is how many random scenarios a test run plays.
const randomDrills = "40"
