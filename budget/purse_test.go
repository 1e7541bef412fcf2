package budget

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/session"
)

func ref(s string) llm.ModelRef {
	r, err := llm.ParseRef(s)
	if err != nil {
		panic(err)
	}
	return r
}

// table is a purse over real stores.
type table struct {
	t        *testing.T
	db       *sqlite.DB
	sessions *session.Store
	purse    *Purse
	cfg      Config
	told     []string
	path     string
	zone     *time.Location
}

// prices in dollars per token of output; a model that is not there has an unknown price.
var prices = map[string]float64{"paid/p1": 0.01, "free/f1": 0}

func laid(t *testing.T, cfg Config, f func(x *table)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bot.sqlite")
	synctest.Test(t, func(t *testing.T) {
		x := &table{t: t, cfg: cfg, path: path, zone: time.UTC}
		x.open()
		defer func() { _ = x.db.Close() }()
		f(x)
	})
}

func (x *table) open() {
	x.t.Helper()
	var err error
	ctx := x.t.Context()
	if x.db, err = sqlite.Open(ctx, x.path, sqlite.Options{BusyTimeout: -1, Volatile: true, Log: slog.New(slog.DiscardHandler)}); err != nil {
		x.t.Fatal(err)
	}
	if x.sessions, err = session.New(ctx, x.db, session.Deps{}); err != nil {
		x.t.Fatal(err)
	}
	x.purse, err = New(ctx, Deps{
		DB: x.db, Usage: x.sessions, Config: func() Config { return x.cfg }, Log: slog.New(slog.DiscardHandler), Zone: func() *time.Location { return x.zone },
		Price: func(r llm.ModelRef, u llm.Usage) (float64, bool) {
			p, known := prices[r.String()]
			return p * float64(u.Output), known
		},
		Told: func(_ context.Context, _, text string) { x.told = append(x.told, text) },
	})
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *table) uses(p session.Purpose, model string, tokens int) {
	x.t.Helper()
	price, known := prices[model]
	err := x.sessions.AddSpend(x.t.Context(), session.Spend{
		At: time.Now().In(x.zone), Agent: "main", Model: ref(model), Purpose: p, Turns: 1, Usage: llm.Usage{Input: tokens / 2, Output: tokens - tokens/2},
		CostMicros: micros(price * float64(tokens-tokens/2)), Priced: known,
	})
	if err != nil {
		x.t.Fatal(err)
	}
	time.Sleep(freshFor)
}

func (x *table) spent(want bool) {
	x.t.Helper()
	if got := x.purse.BackgroundSpent(x.t.Context()); got != want {
		x.t.Errorf("spent: %t", got)
	}
}

func TestBackgroundTokensOfADay(t *testing.T) {
	laid(t, Config{Background: Background{MaxTokensPerDay: 1000}}, func(x *table) {
		x.uses(session.PurposeMessage, "paid/p1", 100_000)
		x.uses(session.PurposeSummary, "paid/p1", 100_000)
		x.spent(false)
		x.uses(session.PurposeCron, "paid/p1", 400)
		x.uses(session.PurposeHeartbeat, "free/f1", 400)
		x.spent(false)
		x.uses(session.PurposeProbe, "unknown/u1", 200)
		for range 3 {
			x.spent(true)
		}
		if len(x.told) != 1 || !strings.Contains(x.told[0], "used 1000 tokens today") {
			t.Errorf("told %q", x.told)
		}
		time.Sleep(24 * time.Hour)
		x.spent(false)
		x.uses(session.PurposeCron, "paid/p1", 1000)
		x.spent(true)
		if len(x.told) != 2 {
			t.Errorf("told %q", x.told)
		}
	})
}

func TestBackgroundCostOfADay(t *testing.T) {
	laid(t, Config{Background: Background{MaxCostPerDay: 1}}, func(x *table) {
		x.uses(session.PurposeCron, "paid/p1", 100) // 50 of output: half a dollar
		x.uses(session.PurposeHeartbeat, "free/f1", 1_000_000)
		x.spent(false)
		x.uses(session.PurposeCron, "paid/p1", 100)
		x.spent(true)
	})
}

func TestAnUnknownPriceIsNotNothing(t *testing.T) {
	laid(t, Config{Background: Background{MaxCostPerDay: 1000}}, func(x *table) {
		x.uses(session.PurposeMessage, "unknown/u1", 10)
		x.spent(false)
		x.uses(session.PurposeCron, "unknown/u1", 10)
		x.spent(true)
		if len(x.told) != 1 || !strings.Contains(x.told[0], "price I do not know") {
			t.Errorf("told %q", x.told)
		}
		x.cfg.Background.MaxCostPerDay = 0
		x.spent(false)
	})
}

func TestDaysAreThoseOfTheZone(t *testing.T) {
	laid(t, Config{Background: Background{MaxTokensPerDay: 10}}, func(x *table) {
		x.zone = time.FixedZone("", -3*3600) // midnight UTC is 21:00 of the day before
		x.uses(session.PurposeCron, "paid/p1", 10)
		time.Sleep(2 * time.Hour)
		x.spent(true)
		time.Sleep(time.Hour)
		x.spent(false)
	})
}

func TestWhatStandInsCost(t *testing.T) {
	laid(t, Config{Fallback: Fallback{MaxPerDay: 1}}, func(x *table) {
		ctx := x.t.Context()
		may := func(model string, want Verdict) {
			t.Helper()
			if got := x.purse.MayStandIn(ctx, ref(model)); got != want {
				t.Errorf("%s: %d", model, got)
			}
		}
		may("paid/p1", Yes)
		may("free/f1", Yes)
		may("unknown/u1", Unknown)
		x.purse.StoodIn(ctx, ref("paid/p1"), llm.Usage{Output: 99})
		may("paid/p1", Yes)
		x.purse.StoodIn(ctx, ref("paid/p1"), llm.Usage{Output: 1})
		may("paid/p1", Empty)
		may("paid/p1", Empty)
		may("free/f1", Yes)
		x.purse.StoodIn(ctx, ref("unknown/u1"), llm.Usage{Output: 5})
		x.purse.StoodIn(ctx, ref("paid/p1"), llm.Usage{}) // nothing was reported: that is not nothing
		day, err := x.purse.Fallbacks(ctx)
		if err != nil || day != (Day{Answers: 4, CostMicros: 1_000_000, Unpriced: 2}) {
			t.Errorf("%+v: %v", day, err)
		}
		if len(x.told) != 2 {
			t.Errorf("told %q", x.told)
		}
		_ = x.db.Close() // the counters survive a restart
		x.open()
		may("paid/p1", Empty)
		time.Sleep(24 * time.Hour)
		may("paid/p1", Yes)
	})
}

func TestWhoHasToBeAsked(t *testing.T) {
	laid(t, Config{Fallback: Fallback{Ask: true}}, func(x *table) {
		for model, want := range map[string]bool{"paid/p1": true, "unknown/u1": true, "free/f1": false} {
			if got := x.purse.MustAsk(ref(model)); got != want {
				t.Errorf("%s: %t", model, got)
			}
			if x.purse.MayStandIn(x.t.Context(), ref(model)) != Yes {
				t.Errorf("%s may not, although there is no limit", model)
			}
		}
		x.cfg = Config{}
		if x.purse.MustAsk(ref("paid/p1")) {
			t.Error("asks although nobody wants it")
		}
	})
}

func TestBudgetsThatMakeNoSense(t *testing.T) {
	for _, c := range []Config{
		{Background: Background{MaxTokensPerDay: -1}},
		{Background: Background{MaxCostPerDay: -0.1}},
		{Fallback: Fallback{MaxPerDay: -1}},
		{Fallback: Fallback{MaxPerDay: 1e12}},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestAmounts(t *testing.T) {
	for n, want := range map[int64]string{0: "$0.00", 1: "<$0.0001", 100: "$0.0001", 10_000: "$0.01", 1_500_000: "$1.50"} {
		if got := Dollars(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
