package app_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"understudy/internal/drill"
)

// ledger holds what the bots of all tests showed to anybody.
type ledger struct {
	mu   sync.Mutex
	seen map[string]map[string]string // test → where → text
}

func (l *ledger) add(test string, outputs map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[test] = outputs
}

// report lists the secrets in the ledger.
func (l *ledger) report() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for test, outputs := range l.seen {
		for _, leak := range drill.FindLeaks(outputs) {
			out = append(out, fmt.Sprintf("%s: a secret is in the %s: …%s…", test, leak.Where, leak.Around))
		}
	}
	return out
}

var shown = ledger{seen: map[string]map[string]string{}}

// TestMain checks what no single test can: that after all of them no goroutine is left, and that no
// seeded secret was shown to anybody (spec/failover.md §16.10).
func TestMain(m *testing.M) {
	drill.Prepare()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for _, leak := range shown.report() {
			fmt.Fprintln(os.Stderr, "LEAK", leak)
			code = 1
		}
		os.Exit(code)
	}))
}

func TestLedgerFindsSecrets(t *testing.T) {
	for _, text := range []string{drill.AlphaKey, "key=" + drill.BetaKey + "&x", `{"k":"` + drill.AlphaKey + `"}`, drill.AlphaKey[:30]} {
		l := ledger{seen: map[string]map[string]string{"t": {"log": "before " + text + " after"}}}
		if len(l.report()) == 0 {
			t.Errorf("%d bytes of secret are not found", len(text))
		}
	}
	for _, s := range drill.Secrets() {
		if len(drill.FindLeaks(map[string]string{"chat": s})) != 1 {
			t.Error("a seeded secret is not found")
		}
	}
}

// pass lets virtual time go by; it is for tests inside a bubble.
func pass(d time.Duration) { <-time.After(d) }
