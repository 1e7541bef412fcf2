package inbound

import (
	"testing"
	"time"
)

// TestPace: twenty messages within a minute are admitted, by the time of writing, in whatever order
// they arrive.
func TestPace(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	full := func() *pace {
		p := newPace()
		for i := range senderBurst {
			if ok, _ := p.admit("ann", noon.Add(time.Duration(i)*time.Second)); !ok {
				t.Fatalf("message %d is refused", i)
			}
		}
		return p
	}
	for _, c := range []struct {
		name     string
		at       time.Duration
		ok, tell bool
	}{
		{"one too many", 20 * time.Second, false, true},
		{"at the end of the minute", senderSpan - 1, false, true},
		{"a minute later", senderSpan, true, false},
		{"a little earlier, out of order", -time.Second, false, true},
		{"an hour earlier, held back by the platform", -time.Hour, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := full()
			if ok, tell := p.admit("ann", noon.Add(c.at)); ok != c.ok || tell != c.tell {
				t.Errorf("admit = %v, %v; want %v, %v", ok, tell, c.ok, c.tell)
			}
			if ok, _ := p.admit("bob", noon.Add(c.at)); !ok {
				t.Error("another sender is refused")
			}
			if _, again := p.admit("ann", noon.Add(c.at)); c.tell && again {
				t.Error("told twice")
			}
		})
	}
}
