package inbound

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/chat"
)

var telegram = Account{Channel: "telegram"}

var codePattern = regexp.MustCompile(`Pairing code: ([A-HJ-NP-Z2-9]{8})\n`)

// ask lets a stranger write and returns the code they are told, "" = nothing was said.
func (w *world) ask(n int, sender string) string {
	w.t.Helper()
	before := len(w.order)
	w.accept(stranger(n, sender))
	if len(w.order) == before {
		return ""
	}
	o := w.order[len(w.order)-1]
	m := codePattern.FindStringSubmatch(o.Markdown)
	if m == nil || o.Class != chat.Command || o.To != stranger(n, sender).Address || !strings.Contains(o.Markdown, "bot pairing approve telegram "+m[1]) {
		w.t.Fatalf("said %+v", o)
	}
	return m[1]
}

func (w *world) approve(code string) (Approved, error) {
	return w.p.Pairing().Approve(w.t.Context(), telegram, code, "cli", len(w.cfg.Owners) > 0)
}

func TestPairing(t *testing.T) {
	bubble(t, func(w *world) {
		code := w.ask(1, "41")
		if code == "" || w.ask(1, "41") != "" || w.ask(2, "41") != "" {
			t.Fatal("one code, told once")
		}
		if len(w.handled) != 0 || w.count("SELECT count(*) FROM inbound") != 0 {
			t.Error("a stranger's message is kept")
		}
		if n := w.count("SELECT count(*) FROM pairing_requests WHERE instr(code_hash, ?)", code); n != 0 {
			t.Error("the code itself is kept")
		}
		pending, err := w.p.Pairing().Pending(w.t.Context(), "telegram")
		if err != nil || len(pending) != 1 || pending[0].Sender.ID != "41" || time.Until(pending[0].ExpiresAt) != codeValid {
			t.Errorf("pending %+v, %v", pending, err)
		}
		got, err := w.approve(" " + strings.ToLower(code[:4]) + "-" + code[4:] + "\n")
		if err != nil || got.Sender.ID != "41" || got.To != stranger(1, "41").Address || !got.Owner {
			t.Fatalf("approved %+v, %v", got, err)
		}
		if _, err := w.approve(code); !errors.Is(err, ErrUnknownCode) {
			t.Errorf("the code worked twice: %v", err)
		}
		w.accept(stranger(3, "41"))
		if len(w.handled) != 1 || !w.handled[0].Owner {
			t.Errorf("handled %+v", w.handled)
		}
		group := stranger(4, "41")
		group.Address.Kind, group.Mentioned = chat.Group, true
		w.accept(group)
		if len(w.handled) != 1 {
			t.Error("a pairing gave rights in a group")
		}

		second, err := w.approve(w.ask(5, "42"))
		if err != nil || second.Owner {
			t.Errorf("the second became owner: %+v, %v", second, err)
		}
		list, err := w.p.Pairing().List(w.t.Context(), "")
		if err != nil || len(list) != 2 {
			t.Errorf("list %+v, %v", list, err)
		}
		for _, want := range []bool{true, false} {
			if was, err := w.p.Pairing().Revoke(w.t.Context(), telegram, "41"); was != want || err != nil {
				t.Errorf("revoked %v, %v", was, err)
			}
		}
		if code := w.ask(6, "41"); code == "" || len(w.handled) != 1 {
			t.Error("still let in after the revocation")
		}
	})
}

func TestPairingKeepsConfiguredOwner(t *testing.T) {
	bubble(t, func(w *world) {
		w.cfg.Owners = []string{"slack:U1"}
		if got, err := w.approve(w.ask(1, "41")); err != nil || got.Owner {
			t.Errorf("approved %+v, %v", got, err)
		}
	})
}

// TestPairingLimits: three wait at a time, for an hour.
func TestPairingLimits(t *testing.T) {
	bubble(t, func(w *world) {
		var codes []string
		for n, sender := range []string{"41", "42", "43"} {
			codes = append(codes, w.ask(n, sender))
		}
		if w.ask(10, "44") != "" {
			t.Error("a fourth request was taken")
		}
		w.pass(codeValid)
		if _, err := w.approve(codes[0]); !errors.Is(err, ErrUnknownCode) {
			t.Errorf("an expired code: %v", err)
		}
		if code := w.ask(11, "41"); code == "" || code == codes[0] {
			t.Errorf("new code %q", code)
		}
		if w.ask(12, "44") == "" {
			t.Error("expired requests count")
		}
		w.pass(8 * 24 * time.Hour)
		if err := w.p.Prune(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.count("SELECT (SELECT count(*) FROM pairing_requests) + (SELECT count(*) FROM pairing_misses)"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// TestPairingLockout: five wrong codes within a minute end the guessing for a minute, also for the
// right code and in another process.
func TestPairingLockout(t *testing.T) {
	bubble(t, func(w *world) {
		code := w.ask(1, "41")
		for range maxMisses {
			if _, err := w.approve("WRONGXXX"); !errors.Is(err, ErrUnknownCode) {
				t.Fatal(err)
			}
			w.pass(time.Second)
		}
		other, err := OpenPairing(w.t.Context(), w.db)
		if err != nil {
			t.Fatal(err)
		}
		w.pass(lockout - 2*time.Second)
		if _, err := other.Approve(w.t.Context(), telegram, code, "cli", false); !errors.Is(err, ErrLocked) {
			t.Errorf("not locked: %v", err)
		}
		w.pass(time.Second)
		if _, err := other.Approve(w.t.Context(), telegram, code, "cli", false); err != nil {
			t.Errorf("locked for more than a minute: %v", err)
		}
	})
}

// TestPairingLockoutAfterClockStep: wrong codes from a time when the clock was ahead lock nobody out.
func TestPairingLockoutAfterClockStep(t *testing.T) {
	bubble(t, func(w *world) {
		code := w.ask(1, "41")
		for range maxMisses {
			if err := w.p.journal.q.PutMiss(w.t.Context(), "telegram", time.Now().Add(24*time.Hour).UnixMilli()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.approve(code); err != nil {
			t.Error(err)
		}
	})
}

// TestPairingCodeNotSent: a code that could not be told is none.
func TestPairingCodeNotSent(t *testing.T) {
	bubble(t, func(w *world) {
		w.sendErr = errors.New("no channel")
		w.ask(1, "41")
		w.sendErr = nil
		if w.ask(2, "41") == "" {
			t.Error("the stranger waits for a code that nobody told them")
		}
	})
}

func TestCode(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		c := newCode()
		if len(c) != codeLength || strings.Trim(c, codeAlphabet) != "" || seen[c] {
			t.Fatalf("code %q", c)
		}
		seen[c] = true
	}
	if strings.ContainsAny(codeAlphabet, "01OI") || len(codeAlphabet) != 32 {
		t.Error("the alphabet has characters that look alike")
	}
	if d := cmp.Diff("Ann\U0001F469", cleanName("\x1b\nAnn\U0001F469\u202e")); d != "" {
		t.Error(d)
	}
}
