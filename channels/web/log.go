package web

// eventLog is the bounded log of changes. A reader holds nothing but the number of the last change
// it saw, so a slow reader costs nothing and blocks nobody. It is guarded by the board's lock.
type eventLog struct {
	limit   int
	last    uint64 // number of the newest change
	floor   uint64 // every change up to this number has been forgotten
	events  []event
	changed chan struct{} // closed and replaced with every change
}

func newEventLog(limit int) *eventLog {
	return &eventLog{limit: limit, changed: make(chan struct{})}
}

// add numbers e and stores it. A newer version of a message replaces the older one in the log:
// whoever missed both needs the newer only.
func (l *eventLog) add(e event) uint64 {
	l.last++
	e.Seq = l.last
	if e.Message != nil {
		m := *e.Message
		m.Rev = e.Seq
		e.Message = &m
		l.drop(func(old event) bool { return old.Message != nil && old.Message.ID == m.ID && old.Session == e.Session })
	}
	if e.Type == eventTyping {
		l.drop(func(old event) bool { return old.Type == eventTyping && old.Session == e.Session })
	}
	l.events = append(l.events, e)
	if len(l.events) > l.limit {
		l.floor = l.events[0].Seq
		l.events[0] = event{} // its place is freed when the slice next grows, not with every change
		l.events = l.events[1:]
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return e.Seq
}

// drop removes the newest event that matches; there is never more than one.
func (l *eventLog) drop(match func(event) bool) {
	for i := len(l.events) - 1; i >= 0; i-- {
		if match(l.events[i]) {
			l.events = append(l.events[:i], l.events[i+1:]...)
			return
		}
	}
}

// after returns the changes behind seq, and a channel that is closed with the next one. It reports
// false when some of them have been forgotten.
func (l *eventLog) after(seq uint64) (missed []event, changed <-chan struct{}, ok bool) {
	if seq < l.floor || seq > l.last {
		return nil, l.changed, false
	}
	for i := len(l.events); i > 0; i-- {
		if l.events[i-1].Seq <= seq {
			return append(missed, l.events[i:]...), l.changed, true
		}
	}
	return append(missed, l.events...), l.changed, true
}
