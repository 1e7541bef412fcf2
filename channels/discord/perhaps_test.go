package discord

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"understudy/channels"

	emulator "understudy/internal/emulate/discord"
)

// The first reply of a command can be repeated. Of the further ones it cannot be asked whether they stand
// there: one that was perhaps sent is not for repeating.
func TestRepliesThatWerePerhapsSent(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id := a.srv.RunCommand(branch, ann, "status")
		in := a.got.Next(t)
		synctest.Wait()
		for n, want := range []struct {
			verdict channels.Verdict
			once    bool
		}{{channels.Retry, false}, {channels.Unsure, true}} {
			a.srv.Inject(emulator.Fault{Path: "/webhooks/", DropAfter: true})
			var e *channels.SendError
			if _, err := a.Send(t.Context(), reply(in, fmt.Sprint(n), fmt.Sprint(n))); !errors.As(err, &e) || e.Verdict != want.verdict || e.Once != want.once {
				t.Errorf("reply %d: %+v", n, e)
			}
		}
		if got := a.texts(id); !slices.Equal(got, []string{"0", "1"}) {
			t.Errorf("replies %q", got)
		}
	})
}
