package crondb

import "context"

// Job is a row of cron_jobs.
type Job struct {
	ID         string
	Definition string
	Revision   int64
	Enabled    bool
	Once       bool
	CreatedAt  int64
	UpdatedAt  int64
	Plan
	RunID        string
	RunningSince int64
	LeaseUntil   int64
	Runs         int64
	Past
}

// Plan is when a job runs next. Zone is the zone it was reckoned in, where that is the configured one.
type Plan struct {
	NextRunAt, SlotAt int64
	Zone              string
}

// Past is what came of earlier runs.
type Past struct {
	Tries          int
	LastSlotAt     int64
	LastRunAt      int64
	LastStatus     string
	LastCompletion string
	LastError      string
	LastModel      string
	LastFallback   bool
	Errors         int
	Skips          int
	Undelivered    int
	ScheduleErrors int
	AlertedAt      int64
	DisabledReason string
	DisabledAt     int64
}

const jobColumns = `id, definition_json, revision, enabled, once, created_at, updated_at, ifnull(next_run_at, 0), ifnull(slot_at, 0),
	ifnull(run_id, ''), ifnull(running_since, 0), ifnull(lease_until, 0), runs, tries, ifnull(last_slot_at, 0), ifnull(last_run_at, 0),
	last_status, last_completion, last_error, last_model, last_fallback, errors, skips, undelivered, schedule_errors,
	ifnull(alerted_at, 0), disabled_reason, ifnull(disabled_at, 0), plan_zone`

func (j *Job) fields() []any {
	return []any{
		&j.ID, &j.Definition, &j.Revision, &j.Enabled, &j.Once, &j.CreatedAt, &j.UpdatedAt, &j.NextRunAt, &j.SlotAt,
		&j.RunID, &j.RunningSince, &j.LeaseUntil, &j.Runs, &j.Tries, &j.LastSlotAt, &j.LastRunAt,
		&j.LastStatus, &j.LastCompletion, &j.LastError, &j.LastModel, &j.LastFallback, &j.Errors, &j.Skips, &j.Undelivered, &j.ScheduleErrors,
		&j.AlertedAt, &j.DisabledReason, &j.DisabledAt, &j.Zone,
	}
}

// InsertJob adds a job unless there are so many already; it reports whether it did.
func (q *Queries) InsertJob(ctx context.Context, j Job, most int) (bool, error) {
	return changed(q.w.ExecContext(ctx, `INSERT INTO cron_jobs (id, definition_json, enabled, once, created_at, updated_at, next_run_at, slot_at, plan_zone)
		SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM cron_jobs) < ?`,
		j.ID, j.Definition, j.Enabled, j.Once, j.CreatedAt, j.UpdatedAt, null(j.NextRunAt), null(j.SlotAt), j.Zone, most))
}

// GetJob returns one job; sql.ErrNoRows when there is none.
func (q *Queries) GetJob(ctx context.Context, id string) (Job, error) {
	var j Job
	err := q.r.QueryRowContext(ctx, `SELECT `+jobColumns+` FROM cron_jobs WHERE id = ?`, id).Scan(j.fields()...)
	return j, err
}

// Jobs returns the jobs in order of their next run, those that wait for nothing last; also disabled
// ones if all.
func (q *Queries) Jobs(ctx context.Context, all bool) ([]Job, error) {
	rows, err := q.r.QueryContext(ctx, `SELECT `+jobColumns+` FROM cron_jobs WHERE enabled OR ?
		ORDER BY next_run_at IS NULL, next_run_at, created_at, id`, all)
	return collect(rows, err, (*Job).fields)
}

// Waiting is the little that a tick needs of a job.
type Waiting struct {
	ID         string
	Once       bool
	NextRunAt  int64
	Running    bool
	LastSlotAt int64
}

const waitingColumns = `SELECT id, once, next_run_at, running_since IS NOT NULL, ifnull(last_slot_at, 0) FROM cron_jobs
	WHERE enabled = 1 AND next_run_at IS NOT NULL`

func (w *Waiting) fields() []any {
	return []any{&w.ID, &w.Once, &w.NextRunAt, &w.Running, &w.LastSlotAt}
}

// Waiting returns the enabled jobs that wait for a run. One id restricts it; "" = all.
func (q *Queries) Waiting(ctx context.Context, id string) ([]Waiting, error) {
	if id != "" {
		rows, err := q.r.QueryContext(ctx, waitingColumns+` AND id = ?`, id)
		return collect(rows, err, (*Waiting).fields)
	}
	rows, err := q.r.QueryContext(ctx, waitingColumns+` ORDER BY next_run_at, id`)
	return collect(rows, err, (*Waiting).fields)
}

// DueBy returns those whose time has come.
func (q *Queries) DueBy(ctx context.Context, now int64) ([]Waiting, error) {
	rows, err := q.r.QueryContext(ctx, waitingColumns+` AND next_run_at <= ? ORDER BY next_run_at, id`, now)
	return collect(rows, err, (*Waiting).fields)
}

// SetDefinition replaces what people decided about a job, if nobody else did since.
func (q *Queries) SetDefinition(ctx context.Context, j Job) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE cron_jobs SET definition_json = ?, once = ?, updated_at = ?, revision = revision + 1
		WHERE id = ? AND revision = ?`, j.Definition, j.Once, j.UpdatedAt, j.ID, j.Revision))
}

// SetPlan begins a new life of a job: it runs at the given time, and what went wrong before is
// forgotten.
func (q *Queries) SetPlan(ctx context.Context, j Job) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE cron_jobs SET enabled = ?, next_run_at = ?, slot_at = ?, plan_zone = ?, updated_at = ?, plan = plan + 1,
		tries = 0, errors = 0, skips = 0, undelivered = 0, schedule_errors = 0, alerted_at = NULL, disabled_reason = '', disabled_at = NULL
		WHERE id = ?`, j.Enabled, null(j.NextRunAt), null(j.SlotAt), j.Zone, j.UpdatedAt, j.ID))
}

// DeleteJob removes a job.
func (q *Queries) DeleteJob(ctx context.Context, id string) (bool, error) {
	return changed(q.w.ExecContext(ctx, `DELETE FROM cron_jobs WHERE id = ?`, id))
}

// Claim takes a slot: the run begins and the next one is settled, if the slot is still there and no
// run is under way. It reports whether the slot was taken.
func (q *Queries) Claim(ctx context.Context, j Job, next Plan) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE cron_jobs SET run_id = ?, running_since = ?, lease_until = ?, run_plan = plan, runs = runs + 1, tries = ?,
		last_slot_at = next_run_at, schedule_errors = 0, next_run_at = ?, slot_at = ?, plan_zone = ?
		WHERE id = ? AND enabled = 1 AND revision = ? AND runs = ? AND running_since IS NULL AND next_run_at = ?`,
		j.RunID, j.RunningSince, j.LeaseUntil, j.Tries, null(next.NextRunAt), null(next.SlotAt), next.Zone, j.ID, j.Revision, j.Runs, j.NextRunAt))
}

// ClaimByHand begins a run beside the plan, if none is under way.
func (q *Queries) ClaimByHand(ctx context.Context, j Job) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE cron_jobs SET run_id = ?, running_since = ?, lease_until = ?, run_plan = plan, runs = runs + 1
		WHERE id = ? AND runs = ? AND running_since IS NULL`, j.RunID, j.RunningSince, j.LeaseUntil, j.ID, j.Runs))
}

// Advance gives up a slot without a run, if it is still there. It counts as one for the numbers of runs.
func (q *Queries) Advance(ctx context.Context, j Job, next Plan) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE cron_jobs SET next_run_at = ?, slot_at = ?, plan_zone = ?, last_slot_at = ?, runs = runs + 1, enabled = ?,
		last_status = ?, last_completion = ?, last_error = ?, skips = ?, schedule_errors = ?, alerted_at = ?, disabled_reason = ?, disabled_at = ?
		WHERE id = ? AND enabled = 1 AND revision = ? AND runs = ? AND next_run_at = ?`,
		null(next.NextRunAt), null(next.SlotAt), next.Zone, null(j.LastSlotAt), j.Enabled, j.LastStatus, j.LastCompletion, j.LastError,
		j.Skips, j.ScheduleErrors, null(j.AlertedAt), j.DisabledReason, null(j.DisabledAt), j.ID, j.Revision, j.Runs, j.NextRunAt))
}

// Misplaced returns some of the enabled jobs whose next run is still to come and was reckoned in another
// zone than the configured one.
func (q *Queries) Misplaced(ctx context.Context, zone string, now int64, most int) ([]Job, error) {
	rows, err := q.r.QueryContext(ctx, `SELECT `+jobColumns+` FROM cron_jobs
		WHERE enabled = 1 AND next_run_at IS NOT NULL AND plan_zone <> '' AND plan_zone <> ? AND next_run_at > ? ORDER BY plan_zone, id LIMIT ?`, zone, now, most)
	return collect(rows, err, (*Job).fields)
}

// Place stores a next run that was reckoned anew. It is no new plan of people's.
func (q *Queries) Place(ctx context.Context, j Job) error {
	_, err := q.w.ExecContext(ctx, `UPDATE cron_jobs SET next_run_at = ?, slot_at = ?, plan_zone = ? WHERE id = ?`,
		null(j.NextRunAt), null(j.SlotAt), j.Zone, j.ID)
	return err
}

// Renew extends the claim of a run; it reports whether the run still has it.
func (q *Queries) Renew(ctx context.Context, id, run string, until int64) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE cron_jobs SET lease_until = ? WHERE id = ? AND run_id = ?`, until, id, run))
}

// Expired returns the jobs whose runs have lost their claims.
func (q *Queries) Expired(ctx context.Context, now int64) ([]Job, error) {
	rows, err := q.r.QueryContext(ctx, `SELECT `+jobColumns+` FROM cron_jobs WHERE running_since IS NOT NULL AND lease_until < ? ORDER BY lease_until`, now)
	return collect(rows, err, (*Job).fields)
}

// Release ends a run's claim and stores what the run changed; it reports whether the run had it.
func (q *Queries) Release(ctx context.Context, j Job) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE cron_jobs SET run_id = NULL, running_since = NULL, lease_until = NULL,
		last_run_at = ?, last_status = ?, last_completion = ?, last_error = ?, last_model = ?, last_fallback = ?, errors = ?, skips = ?, alerted_at = ?
		WHERE id = ? AND run_id = ?`,
		j.LastRunAt, j.LastStatus, j.LastCompletion, j.LastError, j.LastModel, j.LastFallback, j.Errors, j.Skips, null(j.AlertedAt), j.ID, j.RunID))
}

// Replan stores when a job runs next and whether it does, unless people made a new plan since its last
// run began.
func (q *Queries) Replan(ctx context.Context, j Job) (bool, error) {
	return changed(q.w.ExecContext(ctx, `UPDATE cron_jobs SET enabled = ?, next_run_at = ?, slot_at = ?, plan_zone = ?, disabled_reason = ?, disabled_at = ?
		WHERE id = ? AND plan = run_plan`, j.Enabled, null(j.NextRunAt), null(j.SlotAt), j.Zone, j.DisabledReason, null(j.DisabledAt), j.ID))
}

// Delivered stores how a result arrived.
func (q *Queries) Delivered(ctx context.Context, j Job) error {
	_, err := q.w.ExecContext(ctx, `UPDATE cron_jobs SET last_completion = ?, last_error = ?, undelivered = ?, alerted_at = ? WHERE id = ?`,
		j.LastCompletion, j.LastError, j.Undelivered, null(j.AlertedAt), j.ID)
	return err
}
