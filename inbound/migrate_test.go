package inbound

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"understudy/chat"
	"understudy/internal/sqlite"
)

// TestTheFirstSchemaStillOpens: what the first version of the bot left behind is answered by this one.
func TestTheFirstSchemaStillOpens(t *testing.T) {
	now, err := migrations.ReadFile("migrations/00001_inbound.sql")
	if err != nil {
		t.Fatal(err)
	}
	then, err := os.ReadFile("testdata/frozen/00001_inbound.sql")
	if err != nil {
		t.Fatal(err)
	}
	if string(now) != string(then) {
		t.Error("a released migration was edited: add a new one instead")
	}
	path := filepath.Join(t.TempDir(), "bot.sqlite")
	synctest.Test(t, func(t *testing.T) {
		leaveFirstSchema(t, path)
		w := &world{t: t, path: path, sent: map[string]chat.Outbound{}, answers: map[string]Answer{}}
		w.cfg = Config{Access: map[Account]Access{{Channel: "telegram"}: {}, {Channel: "telegram", Name: "open"}: open}}
		w.boot()
		defer w.close()
		if len(w.handled) != 2 || w.handled[0].In.Text != "waiting" || w.handled[1].In.Text != "begun" || !w.handled[1].Interrupted {
			t.Fatalf("handled %+v", w.handled)
		}
		w.accept(message(1, "waiting"))
		w.accept(stranger(7, "41"))
		if len(w.handled) != 3 || !w.handled[2].Owner {
			t.Errorf("handled %q", w.texts())
		}
		letters, err := w.p.DeadLetters(t.Context())
		if err != nil || len(letters) != 1 || letters[0].ID != 3 || letters[0].Reason != "poison" {
			t.Errorf("dead letters %+v, %v", letters, err)
		}
		c, err := OpenCursor(t.Context(), w.db, "telegram", "", "offset")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.Load(t.Context()); n != 42 || err != nil {
			t.Errorf("cursor %d, %v", n, err)
		}
	})
}

// leaveFirstSchema makes a database of the first version.
func leaveFirstSchema(t *testing.T, path string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{BusyTimeout: -1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Migrate(t.Context(), db, "inbound", os.DirFS("testdata/frozen")); err != nil {
		t.Fatal(err)
	}
	at := time.Now().UnixMilli()
	payload := func(n int, text string) string {
		b, err := json.Marshal(message(n, text))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const row = `INSERT INTO inbound (event_key, channel, account, conversation, message_id, state, attempts, payload_json, error, received_at)
		VALUES (?, 'telegram', 'open', '9', ?, ?, ?, ?, ?, ?)`
	err = db.Write(t.Context(), func(tx *sqlite.Tx) error {
		for _, s := range []struct {
			query string
			args  []any
		}{
			{row, []any{"tg:1:1", "1", "received", 0, payload(1, "waiting"), "", at}},
			{row, []any{"tg:1:2", "2", "dispatched", 1, payload(2, "begun"), "", at}},
			{row, []any{"tg:1:3", "3", "dead", 4, payload(3, "killer"), "poison", at}},
			{`INSERT INTO inbound_keys VALUES ('tg:1:1', ?), ('tg:chat:1', ?)`, []any{at, at}},
			{`INSERT INTO pairing_allow VALUES ('telegram', '', '41', 'Ann', 'cli', ?)`, []any{at}},
			{`INSERT INTO owners VALUES ('telegram', '41', ?)`, []any{at}},
			{`INSERT INTO cursors VALUES ('telegram', '', 'offset', '42')`, nil},
		} {
			if _, err := tx.ExecContext(t.Context(), s.query, s.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
