package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// maxCompiled bounds the statements that are kept. Queries are constants of the program, and there
// are fewer; the bound is for one that is not.
const maxCompiled = 512

// statements keeps the queries of a pool compiled: to compile a small query costs SQLite several
// times what it costs to run it, and inside a transaction everybody else waits meanwhile.
type statements struct {
	pool *sql.DB

	mu    sync.RWMutex
	known map[string]*sql.Stmt
}

func newStatements(pool *sql.DB) *statements {
	return &statements{pool: pool, known: map[string]*sql.Stmt{}}
}

// get returns the compiled form of a query, nil if there is none.
func (s *statements) get(query string) *sql.Stmt {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known[query]
}

// compile returns the compiled form of a query and keeps it; nil where that is not possible: then
// running it as it is tells why. It takes a connection of the pool, so whoever is inside a
// transaction must not call it.
func (s *statements) compile(ctx context.Context, query string) *sql.Stmt {
	s.mu.RLock()
	stmt, full := s.known[query], len(s.known) >= maxCompiled
	s.mu.RUnlock()
	if stmt != nil || full {
		return stmt
	}
	stmt, err := s.pool.PrepareContext(ctx, query)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.known[query]; other != nil {
		_ = stmt.Close() // somebody was faster
		return other
	}
	s.known[query] = stmt
	return stmt
}

// Pool runs single queries outside of transactions, each compiled once. Its methods are those of
// *sql.DB.
type Pool struct{ s *statements }

// ExecContext runs a query that returns no rows.
func (p Pool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if stmt := p.s.compile(ctx, query); stmt != nil {
		return stmt.ExecContext(ctx, args...)
	}
	return p.s.pool.ExecContext(ctx, query, args...)
}

// PrepareContext compiles a query for its caller.
func (p Pool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return p.s.pool.PrepareContext(ctx, query)
}

// QueryContext runs a query that returns rows.
func (p Pool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if stmt := p.s.compile(ctx, query); stmt != nil {
		return stmt.QueryContext(ctx, args...)
	}
	return p.s.pool.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a query that returns at most one row.
func (p Pool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if stmt := p.s.compile(ctx, query); stmt != nil {
		return stmt.QueryRowContext(ctx, args...)
	}
	return p.s.pool.QueryRowContext(ctx, query, args...)
}

// Tx is a transaction. What it runs for the first time is compiled for the next transactions once it
// has ended. Its methods are those of *sql.Tx.
type Tx struct {
	tx    *sql.Tx
	s     *statements
	fresh []string // queries that were not compiled yet
}

// stmt returns the compiled form of a query for this transaction, nil if there is none yet.
func (t *Tx) stmt(ctx context.Context, query string) *sql.Stmt {
	if stmt := t.s.get(query); stmt != nil {
		return t.tx.StmtContext(ctx, stmt)
	}
	t.fresh = append(t.fresh, query)
	return nil
}

// learn compiles what was new to a transaction that has ended.
func (t *Tx) learn(ctx context.Context) {
	for _, query := range t.fresh {
		t.s.compile(ctx, query)
	}
}

// ExecContext runs a query that returns no rows.
func (t *Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if stmt := t.stmt(ctx, query); stmt != nil {
		return stmt.ExecContext(ctx, args...)
	}
	return t.tx.ExecContext(ctx, query, args...)
}

// PrepareContext compiles a query for its caller.
func (t *Tx) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return t.tx.PrepareContext(ctx, query)
}

// QueryContext runs a query that returns rows.
func (t *Tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if stmt := t.stmt(ctx, query); stmt != nil {
		return stmt.QueryContext(ctx, args...)
	}
	return t.tx.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a query that returns at most one row.
func (t *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if stmt := t.stmt(ctx, query); stmt != nil {
		return stmt.QueryRowContext(ctx, args...)
	}
	return t.tx.QueryRowContext(ctx, query, args...)
}
