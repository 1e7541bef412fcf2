package cron

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/sqlite"
)

// TestTheFirstSchemaStillOpens: a task and a message that the first version left behind are run and said
// by this one.
func TestTheFirstSchemaStillOpens(t *testing.T) {
	now, err := migrations.ReadFile("migrations/00001_cron.sql")
	if err != nil {
		t.Fatal(err)
	}
	then, err := os.ReadFile("testdata/frozen/00001_cron.sql")
	if err != nil {
		t.Fatal(err)
	}
	if string(now) != string(then) {
		t.Error("a released migration was edited: add a new one instead")
	}
	path := filepath.Join(t.TempDir(), "bot.sqlite")
	synctest.Test(t, func(t *testing.T) {
		leaveFirstSchema(t, path)
		w := &world{people: newPeople(), t: t, path: path}
		w.boot()
		defer w.close()
		w.pass(61 * time.Minute)
		expect(t, w.log("old"), "01T01:00:00 schedule ok succeeded")
		expect(t, w.texts(), "from the first version", "done")
		if next := w.get("old").State.NextRunAt.UTC().Format(time.DateTime); next != "2000-01-02 01:00:00" {
			t.Errorf("next on %s", next)
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
	if err := sqlite.Migrate(t.Context(), db, "cron", os.DirFS("testdata/frozen")); err != nil {
		t.Fatal(err)
	}
	at, due := time.Now().UnixMilli(), time.Now().Add(time.Hour).UnixMilli()
	const place = `{"channel":"telegram","conversation":"1001","kind":"direct"}`
	for query, args := range map[string][]any{
		`INSERT INTO cron_jobs (id, definition_json, enabled, once, created_at, updated_at, next_run_at, slot_at) VALUES ('old', ?, 1, 0, ?, ?, ?, ?)`: {
			`{"name":"old","agentId":"main","schedule":{"kind":"cron","expr":"0 1 * * *","tz":"UTC"},"target":"isolated","payload":{"kind":"agentTurn","message":"do"},"delivery":{"mode":"announce","to":` + place + `}}`,
			at, at, due, due,
		},
		`INSERT INTO cron_letters (idem_key, kind, job_id, run_id, to_json, text, created_at, next_at) VALUES ('cron:old-0:alert', 'alert', 'old', 'old-0', ?, 'from the first version', ?, ?)`: {place, at, at},
	} {
		if _, err := db.Writes().ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
