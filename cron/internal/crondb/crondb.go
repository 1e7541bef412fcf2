// Package crondb holds the statements of scheduled tasks (spec/chat.md §5, §10): one method, one
// statement. Times are integer milliseconds; 0 stands for NULL.
package crondb

import (
	"context"
	"database/sql"
)

// DB is what statements run on: a pool or a transaction.
type DB interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Queries runs the statements, writes on one handle and reads on another.
type Queries struct{ w, r DB }

// New returns the statements over a writer and a reader.
func New(w, r DB) *Queries { return &Queries{w, r} }

// changed reports whether a statement changed a row.
func changed(res sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// null makes NULL of 0.
func null(ms int64) any {
	if ms == 0 {
		return nil
	}
	return ms
}

// collect scans all rows.
func collect[T any](rows *sql.Rows, err error, fields func(*T) []any) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		var x T
		if err := rows.Scan(fields(&x)...); err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, rows.Err()
}
