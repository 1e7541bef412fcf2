package budget

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"sync"
	"time"

	"understudy/internal/clock"
	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/session"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Usage is what was used by day (package session).
type Usage interface {
	Totals(ctx context.Context, agent, since string) ([]session.Total, error)
}

// Deps are what a Purse works with. All but Told are required.
type Deps struct {
	DB     *sqlite.DB // state/bot.sqlite
	Usage  Usage
	Config func() Config
	// Price is what a usage of a model costs, in US dollars; known is false where that is not known.
	Price func(ref llm.ModelRef, u llm.Usage) (usd float64, known bool)
	// Zone is whose days count.
	Zone  func() *time.Location
	Clock clock.Clock
	Log   *slog.Logger
	// Told is told that a purse is empty: key is the same for a purse and a day. It must be quick. nil =
	// nobody.
	Told func(ctx context.Context, key, text string)
}

// Purse says what may still be spent. It is safe for concurrent use.
type Purse struct {
	deps Deps

	mu   sync.Mutex
	told map[string]bool // keys of this day
	seen time.Time       // when the background's use was read last
	used used
}

// used is what the background used on a day.
type used struct {
	day      string
	tokens   int64
	micros   int64
	unpriced int64
}

// freshFor is how long what was read of the background's use is good.
const freshFor = 5 * time.Second

// New returns a Purse over the tables of deps.DB, which it brings up to date.
func New(ctx context.Context, deps Deps) (*Purse, error) {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := sqlite.Migrate(ctx, deps.DB, "budget", dir); err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	return &Purse{deps: deps, told: map[string]bool{}}, nil
}

func (p *Purse) today() string { return session.Day(p.deps.Clock.Now().In(p.deps.Zone())) }

// micros is an amount in millionths of a dollar.
func micros(usd float64) int64 { return int64(math.Round(usd * 1e6)) }

// BackgroundSpent reports whether work that nobody asked for has used up its day. A store that cannot be
// read is no reason to stop: that is logged.
func (p *Purse) BackgroundSpent(ctx context.Context) bool {
	c := p.deps.Config().Background
	if c == (Background{}) {
		return false
	}
	u, err := p.background(ctx)
	if err != nil {
		p.deps.Log.WarnContext(ctx, "budget_not_read", "error", err.Error())
		return false
	}
	const rest = "Scheduled tasks, heartbeats and probes wait until tomorrow; chats go on."
	switch {
	case c.MaxTokensPerDay > 0 && u.tokens >= c.MaxTokensPerDay:
		p.tell(ctx, "background", fmt.Sprintf("🧮 Work in the background has used %d tokens today; budget.background.maxTokensPerDay is %d. %s", u.tokens, c.MaxTokensPerDay, rest))
	case c.MaxCostPerDay > 0 && u.micros >= micros(c.MaxCostPerDay):
		p.tell(ctx, "background", fmt.Sprintf("🧮 Work in the background has cost %s today; budget.background.maxCostPerDay is %s. %s", Dollars(u.micros), Dollars(micros(c.MaxCostPerDay)), rest))
	case c.MaxCostPerDay > 0 && u.unpriced > 0:
		p.tell(ctx, "background", fmt.Sprintf("🧮 Work in the background used a model whose price I do not know, so I cannot tell whether budget.background.maxCostPerDay is kept. %s Give the model a price (models.providers.<id>.models[].cost), or use maxTokensPerDay.", rest))
	default:
		return false
	}
	return true
}

// background reads what the background used today.
func (p *Purse) background(ctx context.Context) (used, error) {
	now, today := p.deps.Clock.Now(), p.today()
	p.mu.Lock()
	if p.used.day == today && now.Sub(p.seen) < freshFor && !now.Before(p.seen) {
		defer p.mu.Unlock()
		return p.used, nil
	}
	p.mu.Unlock()
	totals, err := p.deps.Usage.Totals(ctx, "", today)
	if err != nil {
		return used{}, err
	}
	u := used{day: today}
	for _, t := range totals {
		if t.Day == today && t.Purpose.Background() {
			u.tokens += int64(t.Usage.Input + t.Usage.CacheRead + t.Usage.CacheWrite + t.Usage.Output)
			u.micros += t.CostMicros
			u.unpriced += t.Unpriced
		}
	}
	p.mu.Lock()
	p.used, p.seen = u, now
	p.mu.Unlock()
	return u, nil
}

// Verdict says whether a stand-in may be asked.
type Verdict uint8

// The verdicts.
const (
	Yes     Verdict = iota // it may
	Empty                  // the day's money is spent
	Unknown                // there is a limit, and its price is not known
)

// MayStandIn says whether a model may stand in now.
func (p *Purse) MayStandIn(ctx context.Context, ref llm.ModelRef) Verdict {
	limit := p.deps.Config().Fallback.MaxPerDay
	if limit <= 0 || p.free(ref) {
		return Yes
	}
	if _, known := p.deps.Price(ref, llm.Usage{Output: 1}); !known {
		p.tell(ctx, "unpriced", fmt.Sprintf("💸 %s was not asked to stand in: its price is unknown, and budget.fallback.maxPerDay is %s. Give it a price (models.providers.%s.models[].cost).", ref, Dollars(micros(limit)), ref.Provider))
		return Unknown
	}
	day, err := p.Fallbacks(ctx)
	if err != nil {
		p.deps.Log.WarnContext(ctx, "budget_not_read", "error", err.Error())
		return Yes
	}
	if day.CostMicros < micros(limit) {
		return Yes
	}
	p.tell(ctx, "fallback", fmt.Sprintf("💸 Models that stand in have cost %s today; budget.fallback.maxPerDay is %s. Until tomorrow only free ones stand in.", Dollars(day.CostMicros), Dollars(micros(limit))))
	return Empty
}

// MustAsk reports whether a person has to agree before a model stands in.
func (p *Purse) MustAsk(ref llm.ModelRef) bool { return p.deps.Config().Fallback.Ask && !p.free(ref) }

// free reports whether a model is known to cost nothing.
func (p *Purse) free(ref llm.ModelRef) bool {
	usd, known := p.deps.Price(ref, llm.Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite: 1e6})
	return known && usd == 0
}

// StoodIn counts an answer of a stand-in.
func (p *Purse) StoodIn(ctx context.Context, ref llm.ModelRef, u llm.Usage) {
	usd, known := p.deps.Price(ref, u)
	known = known && (u != llm.Usage{} || usd == 0 && p.free(ref)) // what was not reported is not nothing
	cost, unpriced := micros(usd), 0
	if !known {
		cost, unpriced = 0, 1
	}
	_, err := p.deps.DB.Writes().ExecContext(context.WithoutCancel(ctx), `INSERT INTO budget_fallback (day, answers, cost_micros, unpriced) VALUES (?, 1, ?, ?)
		ON CONFLICT (day) DO UPDATE SET answers = answers + 1, cost_micros = cost_micros + excluded.cost_micros, unpriced = unpriced + excluded.unpriced`,
		p.today(), cost, unpriced)
	if err != nil {
		p.deps.Log.WarnContext(ctx, "budget_not_written", "error", err.Error())
	}
}

// Day is what stand-ins were used for on a day.
type Day struct {
	Answers    int64
	CostMicros int64
	Unpriced   int64 // answers whose price is unknown
}

// Fallbacks returns what stand-ins were used for today.
func (p *Purse) Fallbacks(ctx context.Context) (Day, error) {
	var d Day
	err := p.deps.DB.Reads().QueryRowContext(ctx, `SELECT answers, cost_micros, unpriced FROM budget_fallback WHERE day = ?`, p.today()).
		Scan(&d.Answers, &d.CostMicros, &d.Unpriced)
	if errors.Is(err, sql.ErrNoRows) {
		return Day{}, nil
	}
	if err != nil {
		return d, fmt.Errorf("reading the budget: %w", err)
	}
	return d, nil
}

// tell tells that a purse is empty, once a day.
func (p *Purse) tell(ctx context.Context, purse, text string) {
	today := p.today()
	key := "budget:" + purse + ":" + today
	p.mu.Lock()
	known := p.told[key]
	if !known {
		for k := range p.told {
			if k[len(k)-len(today):] != today {
				delete(p.told, k)
			}
		}
		p.told[key] = true
	}
	p.mu.Unlock()
	if known {
		return
	}
	p.deps.Log.WarnContext(ctx, "budget_spent", "purse", purse)
	if p.deps.Told != nil {
		p.deps.Told(ctx, key, text)
	}
}

// Dollars writes an amount; what is not nothing never looks like it.
func Dollars(micros int64) string {
	switch {
	case micros > 0 && micros < 100:
		return "<$0.0001"
	case micros > 0 && micros < 10_000:
		return fmt.Sprintf("$%.4f", float64(micros)/1e6)
	}
	return fmt.Sprintf("$%.2f", float64(micros)/1e6)
}
