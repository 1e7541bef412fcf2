package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy/failover"
	"understudy/failover/policy"
	"understudy/llm"
)

// kindEvent marks what the scenario itself does; only the timeline shows it.
const kindEvent = "event"

// line is one line of the trace. Which fields are written depends on its kind (spec/tools.md).
type line struct {
	t       time.Duration // since the start, when the thing was finished
	kind    string
	session string
	turn    int

	provider, model string
	profile         llm.ProfileID
	probe           bool
	status          int
	reason          string
	why             string
	duration        time.Duration
	text            string
	retryAt         *float64
	cooldown        *float64
	disabled        *float64
	errorCount      int
	summary         *summary
}

// summary is the last line.
type summary struct {
	Turns, Answered, Failed int
	ByModel                 map[string]int
	Calls, FailedCalls      int
	Notices                 int
	WaitedSeconds           float64
	Slowest                 float64
}

// trace collects what happens, in order of time. It is the failover.Observer of the drill.
type trace struct {
	start time.Time
	now   func() time.Time
	emit  func(line)

	mu      sync.Mutex
	closed  bool
	turns   map[string]int // turn id → number
	shown   map[policy.Key]line
	begun   map[int]time.Time
	sum     summary
	waiting time.Duration
}

func newTrace(start time.Time, now func() time.Time, emit func(line)) *trace {
	return &trace{
		start: start, now: now, emit: emit, turns: map[string]int{}, begun: map[int]time.Time{},
		shown: map[policy.Key]line{}, sum: summary{ByModel: map[string]int{}},
	}
}

// known takes note of the health that the drill begins with.
func (t *trace) known(rows policy.Health) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, row := range rows {
		t.shown[k] = t.health(policy.Changed{Key: k, Row: row})
	}
}

// health returns the line that tells of a row.
func (t *trace) health(c policy.Changed) line {
	now := t.now()
	l := line{kind: "health", profile: c.Key.Profile, model: c.Key.Model, errorCount: c.Row.Step(now)}
	if w := c.Row.Cooldown; w.Active(now) {
		l.cooldown, l.reason = t.offset(w.Until), string(w.Reason)
	}
	if w := c.Row.Disabled; w.Active(now) {
		l.disabled, l.reason = t.offset(w.Until), string(w.Reason)
	}
	return l
}

// begin numbers a new turn.
func (t *trace) begin(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, again := t.turns[id]; again {
		return // run again after a restart
	}
	t.sum.Turns++
	t.turns[id] = t.sum.Turns
	t.begun[t.sum.Turns] = t.now()
}

// happens notes something that the scenario does.
func (t *trace) happens(session string, turn int, text string) {
	t.add(line{kind: kindEvent, session: session, turn: turn, text: text})
}

func (t *trace) add(l line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(l)
}

// write emits a line; the lock is held.
func (t *trace) write(l line) {
	if t.closed {
		return
	}
	l.t = t.now().Sub(t.start)
	t.emit(l)
}

// of returns a line that belongs to a turn; the lock is held.
func (t *trace) of(kind string, run failover.Ref) line {
	return line{kind: kind, session: run.Session, turn: t.turns[run.Turn]}
}

// Attempted implements failover.Observer.
func (t *trace) Attempted(run failover.Ref, r failover.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of("attempt", run)
	l.provider, l.model, l.profile, l.probe = r.Provider, r.Model, r.Profile, r.Probe()
	l.status, l.reason, l.duration, l.why = r.Status, string(r.Reason), r.Duration, string(r.Why)
	t.sum.Calls++
	if r.Reason != "" {
		t.sum.FailedCalls++
	}
	t.write(l)
}

// Skipped implements failover.Observer.
func (t *trace) Skipped(run failover.Ref, r failover.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of("skip", run)
	l.provider, l.model, l.reason, l.why = r.Provider, r.Model, string(r.Reason), string(r.Why)
	t.write(l)
}

// Fell implements failover.Observer; the attempts tell it already.
func (*trace) Fell(failover.Ref, llm.ModelRef, llm.ModelRef, llm.Reason) {}

// Waited implements failover.Observer.
func (t *trace) Waited(run failover.Ref, d time.Duration, why policy.Why) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of("wait", run)
	l.duration, l.why = d, string(why)
	t.waiting += d
	t.write(l)
}

// Settled implements failover.Observer.
func (t *trace) Settled(_ string, changed []policy.Changed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortFunc(changed, func(a, b policy.Changed) int {
		return strings.Compare(string(a.Key.Profile)+"\x00"+a.Key.Model, string(b.Key.Profile)+"\x00"+b.Key.Model)
	})
	for _, c := range changed {
		l := t.health(c)
		if old, ok := t.shown[c.Key]; (ok && sameHealth(old, l)) || (!ok && sameHealth(line{}, l)) {
			continue
		}
		t.shown[c.Key] = l
		t.write(l)
	}
}

func sameHealth(a, b line) bool {
	same := func(x, y *float64) bool { return (x == nil) == (y == nil) && (x == nil || *x == *y) }
	return same(a.cooldown, b.cooldown) && same(a.disabled, b.disabled) && a.reason == b.reason && a.errorCount == b.errorCount
}

func (t *trace) notice(run failover.Ref, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of("notice", run)
	l.text = text
	t.sum.Notices++
	t.write(l)
}

// ended writes how a turn ended: an answer, a failure, or a stop.
func (t *trace) ended(run failover.Ref, kind string, model llm.ModelRef, reason llm.Reason, text string, retryAt time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of(kind, run)
	l.model, l.reason, l.text = model.String(), string(reason), text
	if !retryAt.IsZero() {
		l.retryAt = t.offset(retryAt)
	}
	switch kind {
	case "answer":
		t.sum.Answered++
		t.sum.ByModel[model.String()]++
	case "failed":
		t.sum.Failed++
	}
	t.sum.Slowest = max(t.sum.Slowest, seconds(t.now().Sub(t.begun[l.turn])))
	t.write(l)
}

// finish writes the summary and closes the trace.
func (t *trace) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.WaitedSeconds = seconds(t.waiting)
	sum := t.sum
	t.write(line{kind: "summary", summary: &sum})
	t.closed = true
}

func (t *trace) offset(at time.Time) *float64 {
	s := seconds(at.Sub(t.start))
	return &s
}

func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// encode writes the fields of the line's kind as JSON, in the documented order.
func (l line) encode() ([]byte, error) {
	type pair struct {
		key   string
		value any
	}
	var status any
	if l.status != 0 {
		status = l.status
	}
	fields := []pair{{"t", seconds(l.t)}, {"kind", l.kind}}
	var turn []pair
	if l.session != "" { // a probe of the five-minute job belongs to no turn
		turn = []pair{{"session", l.session}, {"turn", l.turn}}
	}
	switch l.kind {
	case "attempt":
		fields = append(append(fields, turn...), pair{"provider", l.provider}, pair{"model", l.model}, pair{"profile", l.profile},
			pair{"probe", l.probe}, pair{"status", status}, pair{"reason", l.reason}, pair{"duration", seconds(l.duration)})
	case "skip":
		fields = append(append(fields, turn...), pair{"provider", l.provider}, pair{"model", l.model}, pair{"reason", l.reason}, pair{"why", l.why})
	case "wait":
		fields = append(append(fields, turn...), pair{"seconds", seconds(l.duration)}, pair{"why", l.why})
	case "notice":
		fields = append(append(fields, turn...), pair{"text", l.text})
	case "answer":
		fields = append(append(fields, turn...), pair{"model", l.model}, pair{"text", l.text})
	case "command":
		fields = append(fields, pair{"session", l.session}, pair{"text", l.text})
	case "failed":
		fields = append(append(fields, turn...), pair{"reason", l.reason}, pair{"text", l.text}, pair{"retryAt", l.retryAt})
	case "stopped":
		fields = append(fields, turn...)
	case "health":
		fields = append(fields, pair{"profile", l.profile}, pair{"model", l.model}, pair{"cooldownUntil", l.cooldown},
			pair{"disabledUntil", l.disabled}, pair{"reason", l.reason}, pair{"errorCount", l.errorCount})
	case "summary":
		s := l.summary
		fields = append(fields, pair{"turns", s.Turns}, pair{"answered", s.Answered}, pair{"failed", s.Failed}, pair{"byModel", s.ByModel},
			pair{"calls", s.Calls}, pair{"failedCalls", s.FailedCalls}, pair{"notices", s.Notices},
			pair{"waitedSeconds", s.WaitedSeconds}, pair{"slowest", s.Slowest})
	}
	var b strings.Builder
	for i, f := range fields {
		v, err := plain(f.value)
		if err != nil {
			return nil, err
		}
		sep := ","
		if i == 0 {
			sep = "{"
		}
		fmt.Fprintf(&b, "%s%q:%s", sep, f.key, v)
	}
	return []byte(b.String() + "}"), nil
}

// plain is JSON in which people can read <, > and &.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// writeJSON is the emitter of `--json`.
func writeJSON(w io.Writer) func(line) {
	return func(l line) {
		if l.kind == kindEvent {
			return // what the scenario does is no part of the trace
		}
		b, err := l.encode()
		if err != nil {
			b, _ = json.Marshal(map[string]string{"kind": "error", "text": err.Error()})
		}
		_, _ = w.Write(append(b, '\n'))
	}
}

func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
