package reply

import (
	"sync"

	"understudy/chat"
)

// maxTold bounds how many places are remembered; beyond that people are told again.
const maxTold = 4096

// told remembers where people know already that there is no answer (ErrorsOnce). A restart forgets.
type told struct {
	mu     sync.Mutex
	places map[string]bool
}

// once reports whether a failure is news in a place.
func (x *told) once(to chat.Address) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.places[to.Destination()] {
		return false
	}
	if x.places == nil || len(x.places) >= maxTold {
		x.places = make(map[string]bool)
	}
	x.places[to.Destination()] = true
	return true
}

// well tells that a turn succeeded in a place.
func (x *told) well(to chat.Address) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.places, to.Destination())
}
