package sqlite

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// Migrate brings one set of tables up to the newest migration in fsys (files such as
// 00001_first.sql, at its root). Sets are independent: each package that keeps tables in a file
// has its own set with its own version table, goose_<set>. Set names are constants: lower-case
// letters only.
//
// It is safe when several processes do it at once. ErrNewer tells that the set has migrations that
// this program does not know.
func Migrate(ctx context.Context, db *DB, set string, fsys fs.FS) error {
	for _, c := range set {
		if c < 'a' || c > 'z' {
			return fmt.Errorf("migrating %s: %q is not a set name", db.path, set)
		}
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db.writer, fsys,
		goose.WithTableName("goose_"+set), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrating %s, %s: %w", db.path, set, err)
	}
	if err := up(ctx, db, "goose_"+set, provider); err != nil {
		return fmt.Errorf("migrating %s, %s: %w", db.path, set, classify(db.path, err))
	}
	return nil
}

// up applies what is pending. Two processes that start together may both try the same migration:
// the loser's transaction fails, but each loss means that somebody got further, so the number of
// tries is bounded by the number of migrations.
func up(ctx context.Context, db *DB, table string, p *goose.Provider) error {
	var last error
	for range len(p.ListSources()) + 2 {
		current, target, err := p.GetVersions(ctx)
		switch {
		case err != nil:
			last = err
		case current > target:
			return fmt.Errorf("%w (schema %d, this program knows %d)", ErrNewer, current, target)
		case current == target:
			return nil
		default:
			if last = once(ctx, db, table); last == nil {
				_, last = p.Up(ctx)
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return last
}

// once makes the version table refuse a migration that is in it already, so that the loser's
// transaction does fail, whatever its statements are.
func once(ctx context.Context, db *DB, table string) error {
	_, err := db.writer.ExecContext(ctx, "CREATE UNIQUE INDEX IF NOT EXISTS "+table+"_once ON "+table+" (version_id)")
	return err
}
