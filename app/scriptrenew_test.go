package app_test

import (
	"path/filepath"
	"testing"
	"time"

	"understudy/chat"
	"understudy/internal/sqlite"
	"understudy/session"
)

// TestScriptsFollowTheRuleOfTheSession lets two hours pass in sessions that end after one: a turn of a
// script begins them anew, once, and counts as somebody's word only where nobody but scripts speaks.
func TestScriptsFollowTheRuleOfTheSession(t *testing.T) {
	s := newScripts(t, "session: {reset: {mode: idle, idleMinutes: 60}}\n")
	const people, scripts = "agent:main:telegram:direct:1001", "agent:main:cli:nightly"
	ago := time.Now().Add(-2 * time.Hour).Truncate(time.Second)
	db, err := sqlite.Open(t.Context(), filepath.Join(s.state, "state", "bot.sqlite"), sqlite.Options{}) // waits for the bot, which writes too
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	store, err := session.New(t.Context(), db, session.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	pause := func(key string) session.Session {
		was, _, err := store.Ensure(t.Context(), session.Seed{Key: key, AgentID: "main", Address: addressOf(key)})
		if err != nil {
			t.Fatal(err)
		}
		err = db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := tx.ExecContext(t.Context(), "UPDATE sessions SET started_at = ?, last_interaction_at = ? WHERE key = ?", ago.UnixMilli(), ago.UnixMilli(), key)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return was
	}
	for key, counts := range map[string]bool{people: false, scripts: true} {
		was := pause(key)
		turn := `{"session": "` + key + `", "message": "hello"}`
		s.expect("turn.run", turn, `"status":"answered"`)
		first := s.session(key)
		s.expect("turn.run", turn, `"status":"answered"`)
		second := s.session(key)
		if first.ID == was.ID || second.ID != first.ID {
			t.Errorf("%s: %s, then %s and %s", key, was.ID, first.ID, second.ID)
		}
		if moved := !second.LastInteractionAt.Equal(ago); moved != counts {
			t.Errorf("%s: talked in %s, before %s", key, second.LastInteractionAt, ago)
		}
	}
}

// addressOf is the place of a session that these tests put into the store.
func addressOf(key string) chat.Address {
	if key == "agent:main:cli:nightly" {
		return chat.Address{Channel: "cli", Conversation: "nightly", Kind: chat.Direct}
	}
	return chat.Address{Channel: "telegram", Account: "default", Conversation: "1001", Kind: chat.Direct}
}
