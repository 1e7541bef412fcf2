package app_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/failover/policy"
	"understudy/internal/drill"
	emullm "understudy/internal/emulate/llm"
	"understudy/internal/sqlite"
)

const alphaThenBeta = "agents: {defaults: {model: {primary: alpha/a1, fallbacks: [beta/b1]}}}\n"

// A credential store that cannot be used costs its credentials and nothing else: the key of the
// environment answers, the operator is told, and the file stays what it is.
func TestTheBotAnswersWithoutItsStore(t *testing.T) {
	torn := make([]byte, 10<<10)
	if _, err := rand.Read(torn); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(path string) error
		told  string
	}{
		"torn file":                {func(path string) error { return os.WriteFile(path, torn, 0o600) }, "damaged"},
		"a file instead of folder": {func(path string) error { return os.WriteFile(filepath.Dir(path), torn, 0o600) }, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := drill.New(t, drill.Options{Config: alphaThenBeta})
				if err := errors.Join(os.RemoveAll(filepath.Dir(w.Store())), os.MkdirAll(filepath.Dir(filepath.Dir(w.Store())), 0o700)); err != nil {
					t.Fatal(err)
				}
				if name != "a file instead of folder" {
					if err := os.Mkdir(filepath.Dir(w.Store()), 0o700); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.spoil(w.Store()); err != nil {
					t.Fatal(err)
				}
				before, _ := os.ReadFile(w.Store())
				w.Start()
				say(t, w, "hi", 1)
				if n := len(w.Models.Requests()); n != 1 || w.Models.Requests()[0].Key != drill.AlphaKey {
					t.Errorf("%d requests", n)
				}
				say(t, w, "/status", 1)
				sent := w.Telegram.Sent(alice)
				if status := sent[len(sent)-1].Text; !strings.Contains(status, "cannot be read") || !strings.Contains(status, c.told) {
					t.Errorf("/status says: %s", status)
				}
				w.Stop()
				if records := w.Records("auth_store_unavailable"); len(records) == 0 {
					t.Errorf("the log does not say it: %s", w.Log())
				}
				if after, _ := os.ReadFile(w.Store()); !bytes.Equal(before, after) {
					t.Error("the file was changed")
				}
			})
		})
	}
}

// Somebody holds the write lock of the credentials for eight seconds. Turns go on, and what they
// have to say about the credentials is written afterwards.
func TestALockedStoreHoldsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := drill.New(t, drill.Options{Config: alphaThenBeta})
		w.Models.Fault(emullm.Fault{Match: emullm.Match{Model: "a1"}, Status: 401, Body: apiError("invalid_request_error", "invalid_api_key", "Incorrect API key provided")})
		w.Start()
		say(t, w, "/status", 1)
		db, err := sqlite.Open(t.Context(), w.Store(), sqlite.Options{BusyTimeout: -1})
		if err != nil {
			t.Fatal(err)
		}
		tx, err := db.Writer().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		say(t, w, "hi", 1)
		say(t, w, "again", 1)
		if waited := time.Since(began); waited > 8*time.Second {
			t.Errorf("the answers took %v", waited)
		}
		say(t, w, "/status", 1)
		sent := w.Telegram.Sent(alice)
		if status := sent[len(sent)-1].Text; !strings.Contains(status, "cannot be stored at this moment") {
			t.Errorf("/status says: %s", status)
		}
		if h := w.Health().Health; len(h) != 0 {
			t.Errorf("written under a foreign lock: %v", h)
		}
		<-time.After(8*time.Second - time.Since(began))
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			t.Error(err)
		}
		<-time.After(10 * time.Second)
		say(t, w, "/status", 1)
		sent = w.Telegram.Sent(alice)
		if status := sent[len(sent)-1].Text; strings.Contains(status, "cannot be stored") {
			t.Errorf("/status still says: %s", status)
		}
		h := w.Health().Health
		if row := h[policy.Key{Profile: "alpha:env"}]; row.ErrorCount != 1 {
			t.Errorf("alpha: %+v", row)
		}
		if row := h[policy.Key{Profile: "beta:default"}]; row.LastUsed.IsZero() {
			t.Errorf("beta: %+v", row)
		}
		if n := len(w.Records("auth_profile_bookkeeping_late")); n != 1 {
			t.Errorf("told %d times", n)
		}
		w.Stop()
	})
}
