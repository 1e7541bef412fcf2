package app_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"understudy/cron"
	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/session"
)

// withDB opens the database of a state directory.
func withDB(t *testing.T, dir string, f func(db *sqlite.DB)) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "state", "bot.sqlite"), sqlite.Options{BusyTimeout: -1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	f(db)
}

// state opens the bot's database beside it.
func (w *clockwork) state(f func(db *sqlite.DB)) {
	w.t.Helper()
	dir, _ := w.Options().Env("OPENCLAW_STATE_DIR")
	withDB(w.t, dir, f)
}

// addTask makes a task in a database that no bot uses.
func addTask(t *testing.T, db *sqlite.DB, d cron.Draft) {
	t.Helper()
	store, err := cron.NewStore(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	s, err := cron.New(cron.Config{}, cron.Deps{Store: store, Log: slog.New(slog.DiscardHandler), Home: cron.Home{Zone: time.UTC}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// addTask makes a task of an office that is not open yet.
func (o *office) addTask(schedule, channel, to string) {
	o.t.Helper()
	withDB(o.t, o.dir, func(db *sqlite.DB) {
		addTask(o.t, db, cron.Draft{Schedule: schedule, Message: "Report", Channel: channel, To: to})
	})
}

// overrideAuto gives the main session an automatic override of an earlier version.
func (w *clockwork) overrideAuto(model, origin string) {
	w.t.Helper()
	w.state(func(db *sqlite.DB) {
		s, err := session.New(w.t.Context(), db, session.Deps{})
		if err != nil {
			w.t.Fatal(err)
		}
		_, err = s.Update(w.t.Context(), session.MainKey("main", session.Config{}), func(x *session.Session) error {
			m, _ := llm.ParseRef(model)
			o, _ := llm.ParseRef(origin)
			x.Override = session.Override{Model: m, Source: session.SourceAuto, Origin: o}
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	})
}

// addEvent makes a task of an event while the bot is down.
func (w *clockwork) addEvent(schedule, text string) {
	w.t.Helper()
	w.Stop()
	w.state(func(db *sqlite.DB) {
		addTask(w.t, db, cron.Draft{Schedule: schedule, Message: text, Kind: cron.SystemEvent})
	})
	w.Start()
}
