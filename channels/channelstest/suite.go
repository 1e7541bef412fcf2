// Package channelstest is what every channel adapter must do, as tests that run against the
// adapter and an emulator of its platform.
//
// Each behaviour runs in its own testing/synctest bubble: time is virtual, and a goroutine that an
// adapter leaves behind fails the test. So the emulator must be reached over memory
// (internal/emulate/pipe), not over loopback.
//
// An adapter's test makes a Subject: the adapter, the addresses, and a Platform that drives the
// emulator. What a platform can do beyond talking is a small interface each (Platform lists them);
// behaviours without their ability are skipped, and the test output says which. NewMenus and NewMarks
// are for the adapter's Deps.
package channelstest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
)

// Run runs all behaviours; start makes a fresh subject inside a bubble.
func Run(t *testing.T, start func(t *testing.T) *Subject) {
	behaviours := []struct {
		name string
		test func(t *testing.T, s *Subject, r *Recorder)
	}{
		{"receives text", receivesText},
		{"keeps the order", keepsOrder},
		{"recognises mentions", recognisesMentions},
		{"knows replies", knowsReplies},
		{"keeps to threads", keepsToThreads},
		{"tells of edits", tellsEdits},
		{"tells of deletions", tellsDeletions},
		{"delivers again what was not stored", delivers},
		{"knows duplicates", knowsDuplicates},
		{"takes files in", takesFiles},

		{"sends long text in order", sendsLongText},
		{"attaches references", attachesReferences},
		{"edits", edits},
		{"deletes", deletes},
		{"reacts", reacts},
		{"sends files", sendsFiles},
		{"admits that it does not know", admitsUnsure},
		{"passes rate limits on", passesRateLimits},
		{"lets passing errors be retried", retriesServerErrors},
		{"knows when it is thrown out", knowsForbidden},
		{"falls back from broken markup", rejectsMarkup},
		{"sends notices silently", silentNotices},
		{"fails to send after cancellation", cancelled},

		{"turns buttons into commands", buttons},
		{"shows many choices", manyChoices},
		{"refuses foreign pressers", refusesForeign},
		{"lets menus expire", expires},
		{"tells pressers of a refusal", tellsPressers},

		{"answers native commands", answersNative},
		{"answers native commands late", answersLate},
		{"refuses native commands", refusesNative},

		{"survives a cut", survivesCut},
		{"catches up", catchesUp},
		{"stops when it is revoked", stopsRevoked},
		{"stops at once", stopsAtOnce},
		{"keeps accounts apart", keepsApart},
	}
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			skipped := false
			synctest.Test(t, func(t *testing.T) {
				defer func() { skipped = t.Skipped() }()
				inBubble(t, start, b.test)
			})
			if skipped {
				t.Skip("the reason is above")
			}
		})
	}
}

// inBubble starts an adapter, runs one behaviour and shuts down. The end of the bubble is the
// check for goroutines.
func inBubble(t *testing.T, start func(t *testing.T) *Subject, test func(*testing.T, *Subject, *Recorder)) {
	s := start(t)
	r := s.run(t)
	defer s.finish(t)
	if r.await(t, channels.Connected) {
		test(t, s, r)
	}
}

// run starts the adapter.
func (s *Subject) run(t *testing.T) *Recorder {
	t.Helper()
	r := NewRecorder()
	r.marks = s.Seen
	ctx, stop := context.WithCancel(t.Context())
	s.stop, s.done = stop, make(chan struct{})
	go func() {
		defer close(s.done)
		s.err = s.Adapter.Run(ctx, r)
	}()
	synctest.Wait()
	return r
}

// ended waits for the end of Run, for a while, and returns its error.
func (s *Subject) ended(t *testing.T) error {
	t.Helper()
	select {
	case <-s.done:
		return s.err
	case <-time.After(patience):
		t.Error("Run does not end")
		return nil
	}
}

// finish stops the adapter, if it still runs, and frees everything.
func (s *Subject) finish(t *testing.T) {
	t.Helper()
	s.stop()
	<-s.done
	if s.err != nil && !s.revoked {
		t.Errorf("Run ended with %v", s.err)
	}
	s.Close()
	s.Platform.Close()
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// ability returns what a platform must be able to do for a behaviour, or skips it.
func ability[A any](t *testing.T, s *Subject, missing string) A {
	t.Helper()
	a, ok := s.Platform.(A)
	if !ok {
		t.Skip(missing)
	}
	return a
}
