package crondb

import (
	"context"
	"database/sql"
	"errors"
)

// Run is a row of cron_runs.
type Run struct {
	ID             string
	JobID          string
	Seq            int64
	JobName        string
	Cause          string
	ScheduledAt    int64
	StartedAt      int64
	FinishedAt     int64
	Status         string
	Completion     string
	Reason         string
	Error          string
	Requested      string
	Model          string
	FallbackUsed   bool
	FallbackReason string
	Usage          string
	CostMicros     *int64
	Excerpt        string
	Receipts       string
}

const runColumns = `id, job_id, seq, job_name, cause, scheduled_at, started_at, ifnull(finished_at, 0), status, completion, reason, error,
	requested_model, model_ref, fallback_used, fallback_reason, usage_json, cost_micros, output_excerpt, receipts_json`

func (r *Run) fields() []any {
	return []any{
		&r.ID, &r.JobID, &r.Seq, &r.JobName, &r.Cause, &r.ScheduledAt, &r.StartedAt, &r.FinishedAt, &r.Status, &r.Completion, &r.Reason, &r.Error,
		&r.Requested, &r.Model, &r.FallbackUsed, &r.FallbackReason, &r.Usage, &r.CostMicros, &r.Excerpt, &r.Receipts,
	}
}

// InsertRun adds a line to the run log.
func (q *Queries) InsertRun(ctx context.Context, r Run) error {
	_, err := q.w.ExecContext(ctx, `INSERT INTO cron_runs (id, job_id, seq, job_name, cause, scheduled_at, started_at, finished_at, status, completion, reason, error)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, r.JobID, r.Seq, r.JobName, r.Cause, r.ScheduledAt, r.StartedAt, null(r.FinishedAt), r.Status, r.Completion, r.Reason, r.Error)
	return err
}

// FinishRun stores how a running run ended; it reports whether it was running.
func (q *Queries) FinishRun(ctx context.Context, r Run) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE cron_runs SET finished_at = ?, status = ?, completion = ?, reason = ?, error = ?, requested_model = ?,
		model_ref = ?, fallback_used = ?, fallback_reason = ?, usage_json = ?, cost_micros = ?, output_excerpt = ? WHERE id = ? AND status = 'running'`,
		r.FinishedAt, r.Status, r.Completion, r.Reason, r.Error, r.Requested, r.Model, r.FallbackUsed, r.FallbackReason, r.Usage, r.CostMicros, r.Excerpt, r.ID))
}

// CompleteRun stores how a result arrived.
func (q *Queries) CompleteRun(ctx context.Context, r Run) error {
	_, err := q.w.ExecContext(ctx, `UPDATE cron_runs SET completion = ?, reason = ?, error = ?, receipts_json = ? WHERE id = ?`,
		r.Completion, r.Reason, r.Error, r.Receipts, r.ID)
	return err
}

// GetRun returns one run; sql.ErrNoRows when there is none.
func (q *Queries) GetRun(ctx context.Context, id string) (Run, error) {
	var r Run
	err := q.r.QueryRowContext(ctx, `SELECT `+runColumns+` FROM cron_runs WHERE id = ?`, id).Scan(r.fields()...)
	return r, err
}

// Runs returns the last runs of a job, the newest first.
func (q *Queries) Runs(ctx context.Context, job string, limit int) ([]Run, error) {
	rows, err := q.r.QueryContext(ctx, `SELECT `+runColumns+` FROM cron_runs WHERE job_id = ? ORDER BY seq DESC LIMIT ?`, job, limit)
	return collect(rows, err, (*Run).fields)
}

// PruneRuns deletes finished runs of a job up to a number.
func (q *Queries) PruneRuns(ctx context.Context, job string, upTo int64) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM cron_runs WHERE job_id = ? AND seq <= ? AND status <> 'running' AND completion <> 'pending'`, job, upTo)
	return err
}

// PruneOld deletes finished runs that began before a moment.
func (q *Queries) PruneOld(ctx context.Context, before int64) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM cron_runs WHERE started_at < ? AND status <> 'running' AND completion <> 'pending'`, before)
	return err
}

// Letter is a row of cron_letters.
type Letter struct {
	Key       string
	Kind      string
	JobID     string
	RunID     string
	To        string
	Text      string
	Media     string // not read by Letters
	CreatedAt int64
}

// PutLetter stores what is to be said, once for a key.
func (q *Queries) PutLetter(ctx context.Context, l Letter) error {
	_, err := q.w.ExecContext(ctx, `INSERT INTO cron_letters (idem_key, kind, job_id, run_id, to_json, text, media_json, created_at, next_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (idem_key) DO NOTHING`, l.Key, l.Kind, l.JobID, l.RunID, l.To, l.Text, l.Media, l.CreatedAt, l.CreatedAt)
	return err
}

// Letters returns what is to be said now, the longest waiting first. Those that wait for a moment
// beyond horizon were postponed by a clock that was wrong.
func (q *Queries) Letters(ctx context.Context, now, horizon int64, limit int) ([]Letter, error) {
	rows, err := q.r.QueryContext(ctx, `SELECT idem_key, kind, job_id, run_id, to_json, text, created_at FROM cron_letters
		WHERE next_at <= ? OR next_at > ? ORDER BY next_at, idem_key LIMIT ?`, now, horizon, limit)
	return collect(rows, err, func(l *Letter) []any {
		return []any{&l.Key, &l.Kind, &l.JobID, &l.RunID, &l.To, &l.Text, &l.CreatedAt}
	})
}

// LetterWaits reports whether a letter is one of those still, and returns its files.
func (q *Queries) LetterWaits(ctx context.Context, key string, now, horizon int64) (media string, waits bool, err error) {
	err = q.r.QueryRowContext(ctx, `SELECT media_json FROM cron_letters WHERE idem_key = ? AND (next_at <= ? OR next_at > ?)`, key, now, horizon).Scan(&media)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return media, err == nil, err
}

// Postpone sets when a letter is tried again.
func (q *Queries) Postpone(ctx context.Context, key string, at int64) error {
	_, err := q.w.ExecContext(ctx, `UPDATE cron_letters SET next_at = ? WHERE idem_key = ?`, at, key)
	return err
}

// DropLetters forgets what a job has to say.
func (q *Queries) DropLetters(ctx context.Context, job string) error {
	_, err := q.w.ExecContext(ctx, `DELETE FROM cron_letters WHERE job_id = ?`, job)
	return err
}

// OrphanRuns ends the waiting for results of a job that are not sent any more.
func (q *Queries) OrphanRuns(ctx context.Context, job string) error {
	_, err := q.w.ExecContext(ctx, `UPDATE cron_runs SET completion = 'unknown' WHERE job_id = ? AND completion = 'pending'`, job)
	return err
}

// DropLetter forgets what was said; it reports whether it was there.
func (q *Queries) DropLetter(ctx context.Context, key string) (bool, error) {
	return changed(q.w.ExecContext(ctx, `DELETE FROM cron_letters WHERE idem_key = ?`, key))
}
