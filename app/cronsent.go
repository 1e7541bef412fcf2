package app

import "sync"

// sent counts the messages that turns send beside their answers.
type sent struct {
	mu    sync.Mutex
	turns map[string]int
}

// mostCounted bounds how many turns are remembered; when there are more, all are forgotten.
const mostCounted = 10_000

// count returns the number of a turn's next message, from 1.
func (s *sent) count(turn string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns == nil || len(s.turns) >= mostCounted {
		s.turns = map[string]int{}
	}
	s.turns[turn]++
	return s.turns[turn]
}
