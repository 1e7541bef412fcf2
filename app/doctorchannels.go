package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"understudy/channels"
	"understudy/commands"
	"understudy/inbound"
	"understudy/internal/sqlite"
	"understudy/provider/sim"
	"understudy/session"
)

// waitsTooLong is the age at which something that is still to be sent is worth a look (spec/chat.md
// §7.2).
const waitsTooLong = 5 * time.Minute

// channels looks at the accounts of platforms; with Probe the platforms are asked.
func (d *doctor) channels(ctx context.Context) {
	accounts := bareAccounts(d.opts, d.cfg)
	type said struct {
		found []channels.Finding
		err   string
	}
	answers := make([]said, len(accounts))
	known := commands.New(d.commandDeps())
	var wg sync.WaitGroup
	for i, b := range accounts {
		if b.err == nil && d.do.Probe {
			wg.Go(func() { answers[i].found, answers[i].err = probe(ctx, b.adapter, known) })
		}
	}
	wg.Wait()
	for i, b := range accounts {
		switch {
		case b.err != nil:
			d.bad("channels", "", "%s %s: %s", b.channel, b.id, b.err)
		case !d.do.Probe:
			d.ok("channels", "%s %s is configured; --probe asks the platform", b.channel, b.id)
		}
		for _, f := range answers[i].found {
			if f.Fix == "" {
				d.ok("channels", "%s %s: %s", b.channel, b.id, f.What)
				continue
			}
			d.bad("channels", f.Fix, "%s %s: %s", b.channel, b.id, f.What)
		}
		if e := answers[i].err; e != "" {
			d.bad("channels", "", "%s %s: %s", b.channel, b.id, e)
		}
		b.close()
	}
}

// commandDeps is what decides which commands there are. A bot that found nothing but the offline models
// has another one, and nobody to use it on a platform.
func (d *doctor) commandDeps() commands.Deps {
	var deps commands.Deps
	if d.cfg == nil {
		return deps
	}
	if _, offline := d.cfg.Models.Providers[sim.Provider]; offline {
		deps.Sim = func(context.Context, string, string) (string, error) { return "", nil }
	}
	return deps
}

// undelivered looks for what waits in the database: to be sent, to be answered, to be let in.
func (d *doctor) undelivered(ctx context.Context) {
	path := filepath.Join(d.state, "state", "bot.sqlite")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return
	}
	db, err := sqlite.Open(ctx, path, sqlite.Options{BusyTimeout: d.opts.BusyTimeout, Log: quiet()})
	if err != nil {
		return // said already
	}
	defer func() { _ = db.Close() }()
	d.count(ctx, db, "to be sent for more than five minutes",
		"bot channels status tells which channel is down", `SELECT count(*) FROM outbox WHERE state IN ('pending', 'claimed') AND created_at < ?`,
		d.now.Add(-waitsTooLong).UnixMilli())
	d.count(ctx, db, "given up after several failures",
		"bot channels dead-letters list, then resubmit", `SELECT count(*) FROM inbound WHERE state = 'dead' AND id > ?`, 0)
	d.shared(ctx, db)
	d.stuck(ctx, db)
	d.tasks(ctx, db)
}

// count warns of rows that should not be there.
func (d *doctor) count(ctx context.Context, db *sqlite.DB, what, fix, query string, arg any) {
	var n int
	if db.Reader().QueryRowContext(ctx, query, arg).Scan(&n) != nil || n == 0 {
		return // a table that is not there yet holds nothing
	}
	d.warn("messages", fix, "%d messages: %s", n, what)
}

// shared warns when people who were approved share the owner's conversation.
func (d *doctor) shared(ctx context.Context, db *sqlite.DB) {
	if d.cfg == nil || d.cfg.Session.DMScope != session.ScopeMain {
		return
	}
	p, err := inbound.OpenPairing(ctx, db)
	if err != nil {
		return
	}
	list, err := p.List(ctx, "")
	if err == nil && len(list) > 1 {
		d.warn("channels", "use session.dmScope: per-channel-peer", "%d people were approved, and with dmScope main all of them share one conversation", len(list))
	}
}
