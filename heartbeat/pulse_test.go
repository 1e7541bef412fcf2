package heartbeat

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/chat"
	"understudy/internal/clock"
	"understudy/internal/sqlite"
	"understudy/llm"
)

var owner = chat.Address{Channel: "telegram", Conversation: "1001", Kind: chat.Direct}

// heart is a Pulse with everything around it, driven as the scheduler would.
type heart struct {
	t        *testing.T
	mu       sync.Mutex // what the test sets up is there for whoever works meanwhile
	path     string
	db       *sqlite.DB
	pulse    *Pulse
	settings Settings
	turns    []Turn
	said     map[string]string
	order    []string
	told     []string
	busy     Load
	deaf     error // what saying fails with
	media    []chat.Attachment
	renewed  time.Time
	work     func(ctx context.Context, t Turn) (Result, error)
	stop     context.CancelFunc
	ended    chan struct{}
}

func beating(t *testing.T, f func(h *heart)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bot.sqlite")
	synctest.Test(t, func(t *testing.T) {
		h := &heart{t: t, path: path, said: map[string]string{}, settings: Settings{Every: 30 * time.Minute, Show: Show{Alerts: true, Indicator: true}}.WithDefaults()}
		h.boot()
		defer h.close()
		f(h)
	})
}

func (h *heart) boot() {
	h.t.Helper()
	db, err := sqlite.Open(h.t.Context(), h.path, sqlite.Options{BusyTimeout: -1, Volatile: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		h.t.Fatal(err)
	}
	store, err := NewStore(h.t.Context(), db)
	if err != nil {
		h.t.Fatal(err)
	}
	h.db = db
	h.pulse = NewPulse(PulseDeps{
		Store: store, Log: slog.New(slog.DiscardHandler),
		Agents: func() []Agent {
			h.mu.Lock()
			defer h.mu.Unlock()
			return []Agent{{"main", h.settings}}
		},
		Enabled: func() bool { return true },
		Route:   func(context.Context, string, Settings) (chat.Address, bool) { return owner, true },
		Load: func(string, Settings) Load {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.busy
		},
		Resting: func(context.Context, string, Settings) bool { return false },
		Spent:   func(context.Context) bool { return false },
		Renewed: func(context.Context, string) (time.Time, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.renewed, nil
		},
		Turn: func(ctx context.Context, t Turn) (Result, error) {
			h.mu.Lock()
			h.turns = append(h.turns, t)
			work := h.work
			h.mu.Unlock()
			if work == nil {
				return Result{Outcome: OK}, nil
			}
			return work(ctx, t)
		},
		Say: func(_ context.Context, l Letter) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.deaf != nil {
				return h.deaf
			}
			if _, again := h.said[l.Key]; !again {
				h.order = append(h.order, l.Text)
				h.media = append(h.media, l.Media...)
			}
			h.said[l.Key] = l.Text
			return nil
		},
		Tell: func(_ context.Context, _, text string) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.told = append(h.told, text)
			return nil
		},
	}, func() {})
	h.drive()
}

// drive does what the scheduler would.
func (h *heart) drive() {
	ctx, stop := context.WithCancel(context.Background())
	h.stop, h.ended = stop, make(chan struct{})
	p, ended := h.pulse, h.ended
	go func() {
		defer close(ended)
		for (clock.Clock{}).Sleep(ctx, time.Second) == nil {
			if due := p.Due(); !due.IsZero() && !due.After(time.Now()) {
				p.Do(ctx)
			}
		}
	}()
}

func (h *heart) close() {
	h.t.Helper()
	h.stop()
	<-h.ended
	if err := h.pulse.Close(context.Background()); err != nil {
		h.t.Error(err)
	}
	if err := h.db.Close(); err != nil {
		h.t.Error(err)
	}
}

func (h *heart) reboot() {
	h.t.Helper()
	h.close()
	h.boot()
}

func (h *heart) pass(d time.Duration) {
	h.mu.Lock()
	//lint:ignore SA2001 it publishes what was written before
	h.mu.Unlock()
	time.Sleep(d)
	synctest.Wait()
}

func (h *heart) state() Status {
	h.t.Helper()
	st, err := h.pulse.State(h.t.Context(), "main")
	if err != nil {
		h.t.Fatal(err)
	}
	return st
}

func TestBeatsAtItsInterval(t *testing.T) {
	beating(t, func(h *heart) {
		h.pass(4*time.Hour + time.Minute)
		if len(h.turns) != 8 || len(h.order) != 0 {
			t.Errorf("%d heartbeats, said %q", len(h.turns), h.order)
		}
		if st := h.state(); !st.On || st.Last.Outcome != OK || time.Until(st.Next) > 30*time.Minute {
			t.Errorf("%+v", st)
		}
	})
}

func TestRestartsNeitherMoveNorDoubleIt(t *testing.T) {
	beating(t, func(h *heart) {
		for range 12 { // every ten minutes, for two hours
			h.pass(10 * time.Minute)
			h.reboot()
		}
		if len(h.turns) < 3 || len(h.turns) > 4 {
			t.Errorf("%d heartbeats in two hours", len(h.turns))
		}
	})
}

func TestOneMissedWhileNobodyWasThereComesSoonAndOnce(t *testing.T) {
	beating(t, func(h *heart) {
		h.pass(31 * time.Minute)
		h.close()
		h.pass(5 * time.Hour)
		h.boot()
		h.pass(2 * time.Minute)
		if len(h.turns) != 2 {
			t.Errorf("%d heartbeats", len(h.turns))
		}
		h.pass(20 * time.Minute)
		if len(h.turns) != 2 {
			t.Errorf("%d heartbeats", len(h.turns))
		}
	})
}

func TestABusySessionIsLookedAtAgainAndNothingPilesUp(t *testing.T) {
	beating(t, func(h *heart) {
		h.busy.Lane = true
		h.pass(3*time.Hour + 10*time.Minute)
		if len(h.turns) != 0 || h.state().Last.Why != WhyBusy {
			t.Fatalf("%d heartbeats beside a turn", len(h.turns))
		}
		h.busy.Lane = false
		h.pass(90 * time.Second)
		if len(h.turns) != 1 {
			t.Errorf("%d heartbeats when the turn had ended", len(h.turns))
		}
		h.pass(5 * time.Minute)
		if len(h.turns) != 1 {
			t.Errorf("%d heartbeats: they piled up", len(h.turns))
		}
	})
}

func TestWhatIsFoundIsSaidOnceAndExplainedOnce(t *testing.T) {
	beating(t, func(h *heart) {
		h.work = func(context.Context, Turn) (Result, error) {
			return Result{Outcome: Alert, Text: "the disk is full"}, nil
		}
		h.pass(61 * time.Minute)
		if len(h.order) != 2 || !strings.HasPrefix(h.order[0], "the disk is full\n\n_I looked") || h.order[1] != "the disk is full" {
			t.Errorf("said %q", h.order)
		}
	})
}

func TestWhatCouldNotBeSaidIsSaidAfterARestart(t *testing.T) {
	beating(t, func(h *heart) {
		h.settings.Implied = false
		h.work = func(context.Context, Turn) (Result, error) { return Result{Outcome: Alert, Text: "news"}, nil }
		h.deaf = errors.New("the outbox is closed")
		h.pass(31 * time.Minute)
		h.work = nil
		h.deaf = nil
		h.reboot()
		h.pass(time.Minute)
		if len(h.order) != 1 || h.order[0] != "news" {
			t.Errorf("said %q", h.order)
		}
		h.reboot()
		h.pass(time.Minute)
		if len(h.order) != 1 || h.state().Letter != nil {
			t.Errorf("said %q", h.order)
		}
	})
}

func TestFailuresAreToldOnceUntilItWorksAgain(t *testing.T) {
	beating(t, func(h *heart) {
		h.work = func(context.Context, Turn) (Result, error) {
			return Result{Outcome: Failed, Reason: llm.ReasonRateLimit, Detail: "the model's rate limit was reached"}, nil
		}
		h.pass(24*time.Hour + time.Minute)
		if len(h.told) != 1 || !strings.Contains(h.told[0], "failed 3 times in a row — the model's rate limit was reached") || len(h.order) != 0 {
			t.Errorf("told %q, said %q", h.told, h.order)
		}
		if st := h.state(); st.Failures != 48 || st.Last.Text() != "the model's rate limit was reached" {
			t.Errorf("%+v", st)
		}
		work := h.work
		h.work = nil
		h.pass(30 * time.Minute)
		h.work = work
		h.pass(2 * time.Hour)
		if len(h.told) != 2 {
			t.Errorf("told %q", h.told)
		}
	})
}

func TestEventsAreTakenAlongUntilSomebodyLooked(t *testing.T) {
	beating(t, func(h *heart) {
		h.work = func(context.Context, Turn) (Result, error) {
			return Result{Outcome: Failed, Reason: llm.ReasonTimeout}, nil
		}
		for range 2 { // the same one twice
			if err := h.pulse.Notice(h.t.Context(), "main", Event{ID: "j-1", Text: "the build is red", At: time.Now()}, false); err != nil {
				t.Fatal(err)
			}
		}
		h.pass(31 * time.Minute)
		h.work = nil
		h.pass(time.Hour)
		for i, want := range []int{1, 1, 0} {
			if n := strings.Count(h.turns[i].Text, "- the build is red"); n != want {
				t.Errorf("heartbeat %d holds the event %d times", i, n)
			}
		}
	})
}

func TestAnEventCanWakeAlsoWhereHeartbeatsAreOff(t *testing.T) {
	beating(t, func(h *heart) {
		h.settings.Every = 0
		h.busy = Load{Lane: true, Agent: true}
		h.pass(time.Hour)
		if err := h.pulse.Notice(h.t.Context(), "main", Event{ID: "j-1", Text: "now", At: time.Now()}, true); err != nil {
			t.Fatal(err)
		}
		h.pass(3 * time.Minute)
		if len(h.turns) != 0 {
			t.Fatal("beside a turn")
		}
		h.busy.Lane = false
		h.pass(2 * time.Minute)
		h.pass(time.Hour)
		if len(h.turns) != 1 || !strings.Contains(h.turns[0].Text, "- now") {
			t.Errorf("%d heartbeats", len(h.turns))
		}
	})
}

func TestOneThatGivesWayComesAgainInAMinute(t *testing.T) {
	beating(t, func(h *heart) {
		h.work = func(context.Context, Turn) (Result, error) {
			if len(h.turns) == 1 {
				return Result{Outcome: Skipped}, nil
			}
			return Result{Outcome: OK}, nil
		}
		h.pass(30*time.Minute + 30*time.Second)
		if h.state().Last.Why != WhyBusy {
			t.Errorf("%+v", h.state().Last)
		}
		h.pass(time.Minute)
		if len(h.turns) != 1 {
			t.Error("half the interval must lie between two requests")
		}
	})
}

func TestByHand(t *testing.T) {
	beating(t, func(h *heart) {
		h.settings.Hours = &Hours{} // never
		h.pass(2 * time.Hour)
		if len(h.turns) != 0 {
			t.Fatal("outside the hours")
		}
		h.work = func(ctx context.Context, _ Turn) (Result, error) {
			_ = clock.Clock{}.Sleep(ctx, time.Minute)
			return Result{Outcome: Alert, Text: "found"}, nil
		}
		go func() {
			time.Sleep(time.Second)
			if _, err := h.pulse.Now(context.Background(), "main"); !errors.Is(err, ErrRunning) {
				t.Errorf("a second one: %v", err)
			}
		}()
		r, err := h.pulse.Now(h.t.Context(), "main")
		if err != nil || r.Outcome != Alert || r.Excerpt != "found" {
			t.Errorf("%+v: %v", r, err)
		}
		if _, err := h.pulse.Now(h.t.Context(), "nobody"); !errors.Is(err, ErrNoAgent) {
			t.Error(err)
		}
	})
}

func TestSwitchedOffUntilTheRestart(t *testing.T) {
	beating(t, func(h *heart) {
		if err := h.pulse.Switch("main", false); err != nil {
			t.Fatal(err)
		}
		h.pass(2 * time.Hour)
		if len(h.turns) != 0 || h.state().On {
			t.Errorf("%d heartbeats", len(h.turns))
		}
		h.reboot()
		h.pass(31 * time.Minute)
		if len(h.turns) != 1 {
			t.Errorf("%d heartbeats after the restart", len(h.turns))
		}
	})
}

func TestALongOneIsCutOff(t *testing.T) {
	beating(t, func(h *heart) {
		var took time.Duration
		h.work = func(ctx context.Context, _ Turn) (Result, error) {
			began := time.Now()
			_ = clock.Clock{}.Sleep(ctx, time.Hour)
			took = time.Since(began)
			return Result{Outcome: Failed, Reason: llm.ReasonTimeout, Detail: "timed out"}, nil
		}
		h.pass(45 * time.Minute)
		if took != LongestTimeout {
			t.Errorf("it took %s", took)
		}
	})
}

func TestChecklistsAreKeptAndBounded(t *testing.T) {
	beating(t, func(h *heart) {
		s, ctx := h.pulse.deps.Store, h.t.Context()
		text := "- look at the disk"
		if err := s.SetScratch(ctx, "main", &text); err != nil {
			t.Fatal(err)
		}
		h.pass(31 * time.Minute)
		if len(h.turns) != 1 || !strings.HasSuffix(h.turns[0].Text, "# Checklist\n\n- look at the disk") {
			t.Errorf("%+v", h.turns)
		}
		large := strings.Repeat("x", MaxScratch+1)
		broken := "\xff"
		for _, bad := range []*string{&large, &broken} {
			if err := s.SetScratch(ctx, "main", bad); !errors.Is(err, ErrScratch) {
				t.Error(err)
			}
		}
		if got, revision, ok, err := s.Scratch(ctx, "main"); got != text || revision != 1 || !ok || err != nil {
			t.Errorf("%q %d %t %v", got, revision, ok, err)
		}
		if err := s.SetScratch(ctx, "main", nil); err != nil {
			t.Fatal(err)
		}
		if _, _, ok, _ := s.Scratch(ctx, "main"); ok || h.state().Runs != 1 {
			t.Error("removing the checklist")
		}
	})
}
