package soak

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// latencies are the times from a question to its answer, by platform.
type latencies struct{ first, whole map[string][]time.Duration }

func (l *latencies) add(side string, first, whole time.Duration) {
	if l.first == nil {
		l.first, l.whole = map[string][]time.Duration{}, map[string][]time.Duration{}
	}
	l.first[side] = append(l.first[side], first)
	l.whole[side] = append(l.whole[side], whole)
}

// quantile returns the q-th part of a list, from 0 to 1.
func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func quantiles(list []time.Duration) string {
	var out []string
	for _, q := range []float64{0.5, 0.9, 0.99, 1} {
		out = append(out, quantile(list, q).Round(10*time.Millisecond).String())
	}
	return strings.Join(out, " / ")
}

// Stats is what a bot takes of its machine.
type Stats struct {
	Goroutines int
	Heap, RSS  uint64 // bytes: in use after a collection, resident
}

// String is for people.
func (s Stats) String() string {
	return fmt.Sprintf("%d goroutines, heap %.1f MiB, resident %.0f MiB", s.Goroutines, float64(s.Heap)/(1<<20), float64(s.RSS)/(1<<20))
}

// Report is what came of a run.
type Report struct {
	Seed     uint64
	Messages int
	Became   map[string]map[string]int // platform → what became of a question → how many
	Gusts    map[string]int            // what went wrong → how often
	Halves   map[string]int            // platform → half answers that stay because a receipt was lost
	Calms    []Stats                   // in each calm
	Problems []string
	times    latencies
}

// Print writes it for people.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "seed %d: %d messages\n", r.Seed, r.Messages)
	for _, side := range slices.Sorted(maps.Keys(r.Became)) {
		fmt.Fprintf(w, "%-8s", side)
		for _, what := range slices.Sorted(maps.Keys(r.Became[side])) {
			fmt.Fprintf(w, "  %d %s", r.Became[side][what], what)
		}
		fmt.Fprintf(w, "\n         first words after %s, whole after %s (50/90/99/100 %%)\n", quantiles(r.times.first[side]), quantiles(r.times.whole[side]))
	}
	n := 0
	var list []string
	for _, what := range slices.Sorted(maps.Keys(r.Gusts)) {
		n += r.Gusts[what]
		list = append(list, fmt.Sprintf("%s %d", what, r.Gusts[what]))
	}
	fmt.Fprintf(w, "went wrong %d times: %s\n", n, strings.Join(list, ", "))
	fmt.Fprintf(w, "half answers left by lost receipts: %d on Slack, %d on Discord, %d on Telegram\n", r.Halves["slack"], r.Halves["discord"], r.Halves["telegram"])
	for i, s := range r.Calms {
		fmt.Fprintf(w, "calm %d: %s\n", i+1, s)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "PROBLEM: %s\n", p)
	}
}
