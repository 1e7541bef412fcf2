package drill

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/internal/emulate/telegram"
)

// Patience bounds how long something expected may take to come, and how long after the end of a
// script nothing more may come.
const (
	patience = 20 * time.Second
	silence  = 5 * time.Minute
)

// monday is when every script begins.
var monday = time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)

// player is one run of a script.
type player struct {
	w      *World
	screen screen
	asks   int // model requests that have been looked at
}

// Play plays a script. It must be called inside a synctest bubble, and returns the World, which
// has stopped, for what the caller wants to look at.
func Play(t *testing.T, script string) *World {
	t.Helper()
	time.Sleep(time.Until(monday))
	a, err := parseArchive(script)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := parseScript(a, a["conversation"])
	if err != nil {
		t.Fatalf("conversation: %v", err)
	}
	w := New(t, Options{Config: a["bot.yaml"]})
	w.Telegram.AddChat(telegram.Chat{ID: chats["ops"], Type: "supergroup", Title: "Ops"})
	w.Telegram.AddChat(telegram.Chat{ID: chats["forum"], Type: "supergroup", Title: "Forum", Forum: true}, 7)
	for name, id := range people {
		w.Telegram.SetUser(telegram.User{ID: id, FirstName: strings.ToUpper(name[:1]) + name[1:], Username: name})
		w.Telegram.AddChat(telegram.Chat{ID: id, Type: "private"})
	}
	x := &player{w: w, screen: screen{srv: w.Telegram}}
	w.Start()
	for i := 0; i < len(steps); i++ {
		s, first := steps[i], i
		if s.want == "" {
			err = s.do(x)
		} else {
			want := []string{s.want}
			for ; i+1 < len(steps) && steps[i+1].want != ""; i++ {
				want = append(want, steps[i+1].want)
			}
			err = x.sees(want)
		}
		if err != nil {
			t.Fatalf("conversation, line %d, %s: %v\n\nlog:\n%s", steps[first].line, s.text, err, w.recent())
		}
	}
	time.Sleep(silence)
	if err := x.nothing(); err != nil {
		t.Fatalf("after the end: %v\n\nlog:\n%s", err, w.recent())
	}
	if w.proc != nil {
		w.Stop()
	}
	return w
}

// sees waits until exactly the wanted lines are new.
func (x *player) sees(want []string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		synctest.Wait()
		got, remember := x.screen.news()
		if matches(want, got) {
			remember()
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("what is seen differs (-want +got):\n%s", cmp.Diff(want, got))
		}
	}
}

// nothing checks that nothing is new.
func (x *player) nothing() error {
	synctest.Wait()
	if got, _ := x.screen.news(); len(got) > 0 {
		return fmt.Errorf("unexpected:\n%s", strings.Join(got, "\n"))
	}
	return nil
}

// asked compares the requests that models got since the last time.
func (x *player) asked(want []string) error {
	synctest.Wait()
	all := x.w.Models.Requests()
	var got, names []string
	for _, r := range all[x.asks:] {
		got = append(got, r.Model)
	}
	for _, ref := range want {
		if _, model, ok := strings.Cut(ref, "/"); ok {
			names = append(names, model)
		}
	}
	x.asks = len(all)
	if !slices.Equal(names, got) {
		return fmt.Errorf("asked were: %s", strings.Join(got, " "))
	}
	return nil
}

// recent returns the end of the log, for a failed test.
func (w *World) recent() string {
	lines := strings.Split(w.logs.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
