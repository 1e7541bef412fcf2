package web

const mostFinished = 1024

// finished remembers the messages that were dealt with last. It is guarded by the board's lock.
type finished struct {
	known map[string]bool
	order []string // oldest first
}

func (f *finished) add(id string) {
	if f.known == nil {
		f.known = map[string]bool{}
	}
	if f.known[id] {
		return
	}
	if len(f.order) == mostFinished {
		delete(f.known, f.order[0])
		f.order = f.order[1:]
	}
	f.known[id] = true
	f.order = append(f.order, id)
}

func (f *finished) has(id string) bool { return f.known[id] }
