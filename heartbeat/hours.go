package heartbeat

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Hours are the times of day at which heartbeats happen, in minutes since midnight: Start included, End
// not. Start behind End goes over midnight; both the same is never (spec/chat.md §6.1).
type Hours struct {
	Start, End int
	Zone       *time.Location // nil = the one of the moment
}

// ParseHours reads two times such as 08:00 and 24:00.
func ParseHours(start, end string, zone *time.Location) (Hours, error) {
	h := Hours{Zone: zone}
	var err error
	if h.Start, err = parseClock(start); err != nil {
		return h, fmt.Errorf("start: %w", err)
	}
	if h.End, err = parseClock(end); err != nil {
		return h, fmt.Errorf("end: %w", err)
	}
	return h, nil
}

const day = 24 * 60 // minutes

func parseClock(s string) (int, error) {
	hours, minutes, ok := strings.Cut(s, ":")
	h, err1 := strconv.ParseUint(hours, 10, 8)
	m, err2 := strconv.ParseUint(minutes, 10, 8)
	n := int(h)*60 + int(m)
	if !ok || err1 != nil || err2 != nil || m > 59 || n > day || len(minutes) != 2 || len(hours) > 2 {
		return 0, fmt.Errorf("%q is not a time of day such as 08:00", s)
	}
	return n, nil
}

// Contain reports whether a moment is one of them.
func (h Hours) Contain(t time.Time) bool {
	if h.Zone != nil {
		t = t.In(h.Zone)
	}
	now := t.Hour()*60 + t.Minute()
	switch {
	case h.Start == h.End:
		return false
	case h.Start < h.End:
		return h.Start <= now && now < h.End
	}
	return now >= h.Start || now < h.End
}
