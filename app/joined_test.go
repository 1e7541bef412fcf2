package app

import (
	"path/filepath"
	"testing"

	"understudy/internal/sqlite"
)

// TestJoinedMessagesShareTheFateOfTheirTurnOverRestarts shows what a restart makes of messages that another
// one's turn was to answer.
func TestJoinedMessagesShareTheFateOfTheirTurnOverRestarts(t *testing.T) {
	ctx := t.Context()
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "bot.sqlite"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	a := &App{db: db}
	open := func() *joined {
		x, err := a.openJoined(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	x := open()
	must(x.join(ctx, "in-1", "in-2", "in-3"))
	must(x.join(ctx, "in-4", "in-5"))
	must(x.join(ctx, "in-6", "in-7"))
	must(x.part(ctx, "in-7")) // its turn has ended

	x = open() // the process died
	must(x.settle(ctx, func(turn string) (bool, error) { return turn == "in-1", nil }))
	for turn, want := range map[string]string{
		"in-1": "in-1", "in-2": "in-1", "in-3": "in-1", // answered with it
		"in-5": "in-5", // nothing was said: it is answered by itself, whatever becomes of in-4 now
		"in-7": "in-7",
	} {
		if got := x.lead(turn); got != want {
			t.Errorf("%s is answered by %s", turn, got)
		}
	}
	must(x.part(ctx, "in-2", "in-3"))
	if got := open().lead("in-2"); got != "in-2" {
		t.Errorf("in-2 is still joined to %s", got)
	}
}
