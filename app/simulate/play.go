package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"understudy/authstore"
	"understudy/chat"
	"understudy/config"
	"understudy/failover"
	"understudy/failover/policy"
	"understudy/heartbeat"
	"understudy/internal/clock"
	"understudy/internal/secret"
	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/session"
)

// drainTime is how long a restart lets turns finish (spec/chat.md §7.8).
const drainTime = 30 * time.Second

// far is later than anything that can happen in a drill.
var far = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// stage is the product under drill: what survives a restart, and the process that runs on it.
type stage struct {
	sc     *scenario
	clock  *clock.Virtual
	trace  *trace
	world  *world
	log    *slog.Logger
	dir    string
	config *config.Config
	models *models
	stored map[string]bool

	db       *sqlite.DB
	sessions *session.Store
	auth     map[string]*authstore.Store

	process *process
	turns   int
	// interrupted are turns that a restart cut off; the next process runs them again, then it
	// answers what came in meanwhile.
	interrupted []work
	arrived     []event
}

// work is a turn that was accepted.
type work struct {
	id    string
	seq   int // in order of arrival
	event event
	text  string
}

// play runs the drill and emits its trace.
func play(ctx context.Context, sc *scenario, emit func(line), log *slog.Logger) error {
	dir, err := os.MkdirTemp("", "understudy-drill-*")
	if err != nil {
		return fmt.Errorf("temporary directory: %w", err)
	}
	defer os.RemoveAll(dir)
	v := clock.NewVirtual(sc.start)
	s := &stage{
		sc: sc, clock: v, dir: dir, config: sc.config, log: log, stored: map[string]bool{}, auth: map[string]*authstore.Store{},
		world: &world{clock: v.Clock(), rules: sc.world, tools: map[string]*rule{}},
		trace: newTrace(sc.start, v.Now, emit),
	}
	defer s.close()
	if err := s.build(ctx); err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	for _, e := range sc.sorted() {
		if !sc.until.IsZero() && !e.at.Before(sc.until) {
			break
		}
		s.pass(ctx, e.at, false)
		v.Advance(e.at)
		if err := s.apply(ctx, e); err != nil {
			return err
		}
		v.Run(v.Now())
	}
	if sc.until.IsZero() {
		s.pass(ctx, far, true)
	} else {
		s.pass(ctx, sc.until, false)
		v.Advance(sc.until)
	}
	s.trace.finish()
	s.stop()
	return nil
}

// pass lets time go by until end. Every five minutes the job that looks for recovered models runs;
// with idle the drill ends earlier, once nothing but that job is left to do (spec/tools.md).
func (s *stage) pass(ctx context.Context, end time.Time, idle bool) {
	for s.process.nextJob.Before(end) {
		at := s.process.nextJob
		more := s.clock.Run(at)
		if idle && !more {
			return
		}
		if s.process.nextJob != at {
			continue // a restart began the count anew
		}
		s.clock.Advance(at)
		s.process.nextJob = at.Add(heartbeat.Every)
		job := s.process.job
		s.clock.Clock().Go(func() { job.Tick(ctx) })
		s.clock.Run(at)
	}
	s.clock.Run(end)
}

// build fills the databases with what the scenario says is stored.
func (s *stage) build(ctx context.Context) error {
	db, err := sqlite.Open(ctx, filepath.Join(s.dir, "state", "bot.sqlite"), sqlite.Options{Volatile: true, Log: s.log})
	if err != nil {
		return err
	}
	s.db = db
	ids := 0
	s.sessions, err = session.New(ctx, db, session.Deps{Clock: s.clock.Clock(), NewID: func() string {
		ids++
		return "session-" + strconv.Itoa(ids)
	}})
	if err != nil {
		return err
	}
	if err := s.openStores(ctx); err != nil {
		return err
	}
	if err := s.fillAuth(ctx, s.auth[s.config.DefaultAgent()]); err != nil {
		return err
	}
	for _, x := range s.sc.sessions {
		if err := s.fillSession(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// openStores opens the stores of the agents that have none yet. All read through to the default
// agent's.
func (s *stage) openStores(ctx context.Context) (err error) {
	main := s.config.DefaultAgent()
	for _, id := range append([]string{main}, s.config.AgentIDs()...) {
		if s.auth[id] != nil {
			continue
		}
		if s.auth[id], err = s.openAuth(ctx, id, s.auth[main]); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) openAuth(ctx context.Context, agent string, base *authstore.Store) (*authstore.Store, error) {
	return authstore.Open(ctx, authstore.Path(s.dir, agent), authstore.Deps{
		Clock: s.clock.Clock(), Refresher: &refresher{s}, Default: base, Volatile: true, Log: s.log,
	})
}

func (s *stage) fillAuth(ctx context.Context, store *authstore.Store) error {
	for _, p := range s.sc.profiles {
		if err := store.Put(ctx, s.credential(p, 0)); err != nil {
			return fmt.Errorf("profile %s: %w", p.id, err)
		}
		s.stored[p.id.Provider()] = true
	}
	for provider, ids := range s.sc.orders {
		if err := store.SetOrder(ctx, provider, ids); err != nil {
			return fmt.Errorf("order of %s: %w", provider, err)
		}
	}
	rows, probes := health(s.sc.usage)
	if err := store.ImportHealth(ctx, rows, probes); err != nil {
		return fmt.Errorf("usageStats: %w", err)
	}
	s.trace.known(rows)
	return nil
}

// credential makes the stored form of a scenario's profile; n distinguishes logins.
func (s *stage) credential(p profile, n int) authstore.Profile {
	c := authstore.Profile{
		ID: p.id, Kind: p.kind, Email: p.email, Expires: p.expires,
		Secret: secret.New(fmt.Sprintf("simulated-%s-%d", p.id, n)),
	}
	if p.kind == llm.KindOAuth && p.refresh != "" {
		c.Refresh = secret.New(fmt.Sprintf("simulated-refresh-%s-%d", p.id, n))
	}
	return c
}

// health turns recorded usage into health rows and probe times. Disable windows belong to the whole
// profile, cooldowns to the model they name.
func health(list []usage) (policy.Health, map[string]time.Time) {
	rows, probes := policy.Health{}, map[string]time.Time{}
	change := func(k policy.Key, f func(*policy.Row)) {
		row := rows[k]
		f(&row)
		rows[k] = row
	}
	for _, u := range list {
		if !u.lastProbeAt.IsZero() {
			probes[u.profile.Provider()] = u.lastProbeAt
		}
		all := policy.Key{Profile: u.profile}
		change(all, func(row *policy.Row) { row.LastUsed = u.lastUsed })
		counted := all
		if !u.cooldown.until.IsZero() || u.disabled.until.IsZero() {
			counted = policy.Key{Profile: u.profile, Model: u.cooldown.model}
			change(counted, func(row *policy.Row) {
				row.ErrorCount = u.errorCount
				row.Cooldown = u.window(u.cooldown, llm.ReasonUnclassified)
			})
		}
		change(counted, func(row *policy.Row) { row.LastFailureAt, row.FailureCounts = u.lastFailureAt, u.failureCounts })
		if !u.disabled.until.IsZero() {
			change(all, func(row *policy.Row) {
				row.Disabled = u.window(u.disabled, llm.ReasonBilling)
				if row.Disabled.Reason == llm.ReasonAuthPermanent {
					row.AuthCount = max(u.errorCount, 1)
				} else {
					row.BillingCount = max(u.errorCount, 1)
				}
			})
		}
		if !u.blocked.until.IsZero() {
			change(policy.Key{Profile: u.profile, Model: u.blocked.model}, func(row *policy.Row) {
				if u.blocked.until.After(row.Cooldown.Until) {
					row.Cooldown = u.window(u.blocked, llm.ReasonRateLimit)
					row.Cooldown.Stated = true
				}
			})
		}
	}
	return rows, probes
}

func (u usage) window(x span, fallback llm.Reason) policy.Window {
	if x.until.IsZero() {
		return policy.Window{}
	}
	w := policy.Window{Since: u.lastFailureAt, Until: x.until, Reason: x.reason, Stated: x.stated}
	if w.Reason == "" {
		w.Reason = fallback
	}
	return w
}

func (s *stage) fillSession(ctx context.Context, x startSession) error {
	agent := x.agent
	if agent == "" {
		agent = s.config.DefaultAgent()
	}
	if _, _, err := s.sessions.Ensure(ctx, session.Seed{Key: x.name, AgentID: agent, Address: address(x.name)}); err != nil {
		return err
	}
	_, err := s.sessions.Update(ctx, x.name, func(row *session.Session) error {
		row.Override = session.Override{Model: x.overrideRef, Source: x.overrideSource, Origin: x.originRef}
		row.Pin = session.Pin{Profile: llm.ProfileID(x.pin), Source: x.pinSource, Compactions: x.compactions}
		row.Notice = session.Pair{Selected: x.noticeSelectedR, Active: x.noticeActR, Reason: x.noticeReason}
		row.Compactions = x.compactions
		row.SwitchPending = x.switchPending
		return nil
	})
	return err
}

// address is where a session of the drill is answered.
func address(name string) chat.Address {
	return chat.Address{Channel: "drill", Conversation: name, Kind: chat.Direct}
}

// close frees the databases.
func (s *stage) close() {
	for _, a := range s.auth {
		if a.Close() != nil {
			continue // the directory goes anyway
		}
	}
	if s.db != nil {
		_ = s.db.Close()
	}
}

// refresher is the token endpoint of the drill.
type refresher struct{ s *stage }

// Refresh implements authstore.Refresher.
func (r *refresher) Refresh(ctx context.Context, p authstore.Profile) (authstore.Tokens, error) {
	kind := ""
	for _, x := range r.s.sc.profiles {
		if x.id == p.ID {
			kind = x.refresh
		}
	}
	now := r.s.clock.Now()
	switch kind {
	case "ok":
		return authstore.Tokens{Access: secret.New(fmt.Sprintf("simulated-%s-%d", p.ID, now.UnixMilli())), Expires: now.Add(time.Hour)}, nil
	case "invalid_grant":
		return authstore.Tokens{}, &authstore.RefreshError{Code: "invalid_grant"}
	}
	err := r.s.clock.Clock().Await(ctx, nil)
	if err == nil {
		err = errors.New("the token endpoint does not answer")
	}
	return authstore.Tokens{}, err
}

var _ failover.Observer = (*trace)(nil)
