package reply

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"understudy/internal/clock"
)

// Whatever turns want and give up, what they hold together is never more than there is, the first one that
// waits has a reason to, and all room comes back.
func TestFilesOfAllTurnsAreBounded(t *testing.T) {
	const room = 10
	rapid.Check(t, func(r *rapid.T) {
		wishes := rapid.SliceOfN(rapid.Int64Range(1, room), 1, 12).Draw(r, "wishes")
		leaves := rapid.SliceOfN(rapid.Bool(), len(wishes), len(wishes)).Draw(r, "give up")
		synctest.Test(t, func(t *testing.T) {
			s := newShelf(clock.Clock{}, room)
			var held int64
			var gives []func()
			var ends []context.CancelFunc
			waits := map[int]bool{}
			settle := func() {
				synctest.Wait()
				for i, n := range wishes {
					if waits[i] && held+n <= room { // nobody before it waits, so it has no reason to
						t.Errorf("turn %d waits for %d bytes, and %d of %d are held", i, n, held, room)
					}
					if waits[i] {
						break
					}
				}
			}
			for i, n := range wishes {
				ctx, end := context.WithCancel(t.Context())
				ends = append(ends, end)
				waits[i] = true
				go func() {
					give, err := s.take(ctx, n)
					s.mu.Lock()
					defer s.mu.Unlock()
					if delete(waits, i); err != nil {
						return
					}
					if held += n; held > room {
						t.Errorf("%d of %d bytes are held", held, room)
					}
					gives = append(gives, func() { held -= n; give() })
				}()
				settle()
			}
			for i, end := range ends {
				if leaves[i] {
					end()
					settle()
				}
			}
			for len(gives) > 0 {
				give := gives[0]
				gives = gives[1:]
				give()
				settle()
			}
			if held != 0 || s.free != room || len(s.queue) != 0 {
				t.Errorf("%d held, %d free, %d wait", held, s.free, len(s.queue))
			}
			for _, end := range ends {
				end()
			}
		})
	})
}

func TestRoomForAFileIsNotWaitedForInVain(t *testing.T) {
	s := newShelf(clock.Clock{}, 1)
	if _, err := s.take(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	why := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := s.take(ctx, 1); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
