package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// QueueMode says what becomes of a message that comes while its conversation is busy
// (spec/chat.md §1.5).
type QueueMode string

// The modes.
const (
	QueueSteer     QueueMode = "steer"     // to the running turn, at its next tool step; else as collect
	QueueFollowup  QueueMode = "followup"  // a turn of its own, later
	QueueCollect   QueueMode = "collect"   // with what else waits, as one turn
	QueueInterrupt QueueMode = "interrupt" // ends the running turn
)

var queueModes = []QueueMode{QueueSteer, QueueFollowup, QueueCollect, QueueInterrupt}

// DropPolicy says what gives way when too many messages wait.
type DropPolicy string

// The policies.
const (
	DropNew       DropPolicy = "new"       // the newest is refused
	DropOld       DropPolicy = "old"       // the oldest goes, silently
	DropSummarize DropPolicy = "summarize" // the oldest goes, and a line of it stays
)

var dropPolicies = []DropPolicy{DropNew, DropOld, DropSummarize}

// Defaults and bounds of the queue options.
const (
	defaultQueueDebounce = 500 * time.Millisecond
	defaultQueueCap      = 20
	longestDebounce      = 5 * time.Minute
	largestCap           = 100
)

// Queue is the way in which messages wait. In a stored override the zero value of a field means that
// it is not overridden.
type Queue struct {
	Mode     QueueMode      `json:"mode,omitempty"`
	Debounce *time.Duration `json:"debounce,omitempty"` // nil = not set
	Cap      int            `json:"cap,omitempty"`
	Drop     DropPolicy     `json:"drop,omitempty"`
}

// IsZero reports whether nothing is overridden.
func (q Queue) IsZero() bool { return q == Queue{} }

// QueueConfig is the `queue` section of the configuration.
type QueueConfig struct {
	Mode                QueueMode            `yaml:"mode,omitempty"`
	ByChannel           map[string]QueueMode `yaml:"byChannel,omitempty"`
	DebounceMs          *int                 `yaml:"debounceMs,omitempty"`
	DebounceMsByChannel map[string]int       `yaml:"debounceMsByChannel,omitempty"`
	Cap                 int                  `yaml:"cap,omitempty"`
	Drop                DropPolicy           `yaml:"drop,omitempty"`
}

// Validate names every value that makes no sense.
func (c QueueConfig) Validate() error {
	var errs []error
	mode := func(path string, m QueueMode) {
		if m != "" && !slices.Contains(queueModes, m) {
			errs = append(errs, fmt.Errorf("%s: %q is none of steer, followup, collect, interrupt", path, m))
		}
	}
	quiet := func(path string, ms int) {
		if ms < 0 || time.Duration(ms)*time.Millisecond > longestDebounce {
			errs = append(errs, fmt.Errorf("%s: must be between 0 and %d", path, longestDebounce.Milliseconds()))
		}
	}
	mode("mode", c.Mode)
	for _, name := range slices.Sorted(maps.Keys(c.ByChannel)) {
		mode("byChannel."+name, c.ByChannel[name])
	}
	if c.DebounceMs != nil {
		quiet("debounceMs", *c.DebounceMs)
	}
	for _, name := range slices.Sorted(maps.Keys(c.DebounceMsByChannel)) {
		quiet("debounceMsByChannel."+name, c.DebounceMsByChannel[name])
	}
	if c.Cap < 0 || c.Cap > largestCap {
		errs = append(errs, fmt.Errorf("cap: must be between 1 and %d", largestCap))
	}
	if c.Drop != "" && !slices.Contains(dropPolicies, c.Drop) {
		errs = append(errs, fmt.Errorf("drop: %q is none of old, new, summarize", c.Drop))
	}
	return errors.Join(errs...)
}

// For returns what counts in a conversation on a channel: its stored override, else the channel's
// value, else the general one. Every field of the result is set.
func (c QueueConfig) For(channel string, stored Queue) Queue {
	q := stored
	if q.Mode == "" {
		q.Mode = firstOf(c.ByChannel[channel], c.Mode, QueueSteer)
	}
	if q.Debounce == nil {
		d := defaultQueueDebounce
		if c.DebounceMs != nil {
			d = time.Duration(*c.DebounceMs) * time.Millisecond
		}
		if ms, ok := c.DebounceMsByChannel[channel]; ok {
			d = time.Duration(ms) * time.Millisecond
		}
		q.Debounce = &d
	}
	if q.Cap == 0 {
		q.Cap = firstOf(c.Cap, defaultQueueCap)
	}
	if q.Drop == "" {
		q.Drop = firstOf(c.Drop, DropSummarize)
	}
	return q
}

func firstOf[T comparable](values ...T) (zero T) {
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}

// String writes the options as /queue takes them.
func (q Queue) String() string {
	var words []string
	if q.Mode != "" {
		words = append(words, string(q.Mode))
	}
	if q.Debounce != nil {
		words = append(words, "debounce:"+short(*q.Debounce))
	}
	if q.Cap != 0 {
		words = append(words, "cap:"+strconv.Itoa(q.Cap))
	}
	if q.Drop != "" {
		words = append(words, "drop:"+string(q.Drop))
	}
	return strings.Join(words, " ")
}

// short writes a duration without empty parts.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	return s
}

// ParseQueue reads what stands behind /queue: a mode and `debounce:`, `cap:`, `drop:` in any order. A
// bare number of debounce is milliseconds; the units are ms, s and m. Its error is fit for chat.
func ParseQueue(args string) (Queue, error) {
	var q Queue
	for _, word := range strings.Fields(strings.ToLower(args)) {
		name, value, isOption := strings.Cut(word, ":")
		var err error
		switch {
		case !isOption && slices.Contains(queueModes, QueueMode(word)):
			q.Mode = QueueMode(word)
		case name == "debounce":
			q.Debounce, err = parseDebounce(value)
		case name == "cap":
			q.Cap, err = strconv.Atoi(value)
			if err != nil || q.Cap < 1 || q.Cap > largestCap {
				err = fmt.Errorf("`cap:` takes a number from 1 to %d", largestCap)
			}
		case name == "drop" && slices.Contains(dropPolicies, DropPolicy(value)):
			q.Drop = DropPolicy(value)
		default:
			err = fmt.Errorf("%q is no queue option: the modes are steer, followup, collect and interrupt; the options debounce:2s, cap:20 and drop:old, new or summarize", word)
		}
		if err != nil {
			return Queue{}, err
		}
	}
	return q, nil
}

func parseDebounce(s string) (*time.Duration, error) {
	if _, err := strconv.Atoi(s); err == nil {
		s += "ms"
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > longestDebounce {
		return nil, errors.New("`debounce:` takes a time up to 5m, such as 500ms or 2s")
	}
	return &d, nil
}
