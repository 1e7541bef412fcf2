package cron

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"understudy/chat"
	"understudy/cron/internal/crondb"
	"understudy/internal/sqlite"
	"understudy/llm"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Errors of Store and Scheduler.
var (
	ErrNotFound = errors.New("there is no such scheduled task")
	ErrEdited   = errors.New("somebody else changed the task at the same moment; look at it and try again")
	ErrRunning  = errors.New("the task is running")
	ErrNotDue   = errors.New("the task is not due")
	ErrTooMany  = errors.New("there are too many scheduled tasks; remove some")
)

// Bounds of the run log (spec/chat.md §5.8).
const (
	keepRuns = 7 * 24 * time.Hour
	maxRuns  = 2000 // of a job
	mostRuns = 500  // that Runs returns at once
)

// Store keeps jobs and their runs in state/bot.sqlite. It is safe for concurrent use by any number of
// processes. Reading it needs no Scheduler.
type Store struct {
	db *sqlite.DB
	q  *crondb.Queries
}

// NewStore returns the store over db and brings its tables up to date. The caller closes db.
func NewStore(ctx context.Context, db *sqlite.DB) (*Store, error) {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := sqlite.Migrate(ctx, db, "cron", dir); err != nil {
		return nil, fmt.Errorf("scheduled tasks: %w", err)
	}
	return &Store{db, crondb.New(db.Writes(), db.Reads())}, nil
}

// Get returns one job, or ErrNotFound.
func (s *Store) Get(ctx context.Context, id string) (Job, error) { return get(ctx, s.q, id) }

func get(ctx context.Context, q *crondb.Queries, id string) (Job, error) {
	row, err := q.GetJob(ctx, id)
	if errors.Is(err, sql.ErrNoRows) {
		return Job{}, fmt.Errorf("%w: %s", ErrNotFound, clip(id, 40))
	}
	if err != nil {
		return Job{}, fmt.Errorf("reading task %s: %w", id, err)
	}
	return jobOf(row)
}

// List returns the jobs in order of their next run; with all also those that are switched off or done.
func (s *Store) List(ctx context.Context, all bool) ([]Job, error) {
	rows, err := s.q.Jobs(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("reading the tasks: %w", err)
	}
	return convert(rows, jobOf)
}

// Run returns one line of the run log, or ErrNotFound.
func (s *Store) Run(ctx context.Context, id string) (Run, error) {
	row, err := s.q.GetRun(ctx, id)
	if errors.Is(err, sql.ErrNoRows) {
		return Run{}, fmt.Errorf("run %s: %w", clip(id, 40), ErrNotFound)
	}
	if err != nil {
		return Run{}, fmt.Errorf("reading run %s: %w", id, err)
	}
	return runOf(row)
}

// Runs returns the last runs of a job, the newest first, at most 500. They are there for a while after
// the job was removed.
func (s *Store) Runs(ctx context.Context, job string, limit int) ([]Run, error) {
	rows, err := s.q.Runs(ctx, job, min(max(limit, 1), mostRuns))
	if err != nil {
		return nil, fmt.Errorf("reading the runs of %s: %w", job, err)
	}
	return convert(rows, runOf)
}

// Prune forgets runs that began more than seven days ago.
func (s *Store) Prune(ctx context.Context, now time.Time) error {
	return s.q.PruneOld(ctx, now.Add(-keepRuns).UnixMilli())
}

// write runs f in one transaction. It is not interrupted by the end of a context: what has happened is
// written down also during a shutdown.
func (s *Store) write(ctx context.Context, f func(context.Context, *crondb.Queries) error) error {
	ctx = context.WithoutCancel(ctx)
	return s.db.Write(ctx, func(tx *sqlite.Tx) error { return f(ctx, crondb.New(tx, tx)) })
}

func convert[R, T any](rows []R, f func(R) (T, error)) ([]T, error) {
	out := make([]T, 0, len(rows))
	for _, r := range rows {
		x, err := f(r)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// rowOf is the inverse of jobOf.
func rowOf(j Job) (crondb.Job, error) {
	definition, err := json.Marshal(j.Definition)
	if err != nil {
		return crondb.Job{}, fmt.Errorf("encoding task %s: %w", j.ID, err)
	}
	s := j.State
	model := ""
	if !s.LastModel.IsZero() {
		model = s.LastModel.String()
	}
	return crondb.Job{
		ID: j.ID, Definition: string(definition), Revision: j.Revision, Enabled: j.Enabled, Once: j.once(),
		CreatedAt: ms(j.CreatedAt), UpdatedAt: ms(j.UpdatedAt), Plan: planOf(s.NextRunAt, s.SlotAt, s.planZone),
		RunID: s.RunID, RunningSince: ms(s.RunningSince), Runs: s.Runs,
		Past: crondb.Past{
			Tries: s.Tries, LastSlotAt: ms(s.LastSlotAt), LastRunAt: ms(s.LastRunAt), LastStatus: string(s.LastStatus),
			LastCompletion: string(s.LastCompletion), LastError: s.LastError, LastModel: model, LastFallback: s.LastFallback,
			Errors: s.ConsecutiveErrors, Skips: s.ConsecutiveSkips, Undelivered: s.ConsecutiveUndelivered, ScheduleErrors: s.ScheduleErrors,
			AlertedAt: ms(s.AlertedAt), DisabledReason: s.DisabledReason, DisabledAt: ms(s.DisabledAt),
		},
	}, nil
}

func planOf(next, slot time.Time, zone string) crondb.Plan {
	return crondb.Plan{NextRunAt: ms(next), SlotAt: ms(slot), Zone: zone}
}

func jobOf(r crondb.Job) (Job, error) {
	j := Job{
		ID: r.ID, Revision: r.Revision, Enabled: r.Enabled, CreatedAt: at(r.CreatedAt), UpdatedAt: at(r.UpdatedAt),
		State: State{
			NextRunAt: at(r.NextRunAt), SlotAt: at(r.SlotAt), planZone: r.Zone, RunningSince: at(r.RunningSince), RunID: r.RunID, Runs: r.Runs,
			Tries: r.Tries, LastSlotAt: at(r.LastSlotAt), LastRunAt: at(r.LastRunAt), LastStatus: Status(r.LastStatus),
			LastCompletion: Completion(r.LastCompletion), LastError: r.LastError, LastModel: modelOf(r.LastModel), LastFallback: r.LastFallback,
			ConsecutiveErrors: r.Errors, ConsecutiveSkips: r.Skips, ConsecutiveUndelivered: r.Undelivered, ScheduleErrors: r.ScheduleErrors,
			AlertedAt: at(r.AlertedAt), DisabledReason: r.DisabledReason, DisabledAt: at(r.DisabledAt),
		},
	}
	if err := json.Unmarshal([]byte(r.Definition), &j.Definition); err != nil {
		return Job{}, fmt.Errorf("task %s: %w", r.ID, err)
	}
	return j, nil
}

// modelOf reads a stored reference; what cannot be read is none.
func modelOf(s string) llm.ModelRef {
	ref, err := llm.ParseRef(s)
	if err != nil {
		return llm.ModelRef{}
	}
	return ref
}

func runRow(r Run, seq int64) (crondb.Run, error) {
	row := crondb.Run{
		ID: r.ID, JobID: r.JobID, Seq: seq, JobName: r.JobName, Cause: string(r.Trigger), ScheduledAt: ms(r.ScheduledAt), StartedAt: ms(r.StartedAt),
		FinishedAt: ms(r.FinishedAt), Status: string(r.Status), Completion: string(r.Completion), Reason: string(r.Reason), Error: r.Error,
		FallbackUsed: r.FallbackUsed, FallbackReason: string(r.FallbackReason), CostMicros: r.CostMicros, Excerpt: r.Excerpt,
	}
	if !r.Requested.IsZero() {
		row.Requested = r.Requested.String()
	}
	if !r.Model.IsZero() {
		row.Model = r.Model.String()
	}
	var err error
	if row.Usage, err = encode(r.Usage); err != nil {
		return row, err
	}
	row.Receipts, err = encode(r.Receipts)
	return row, err
}

func encode(x any) (string, error) {
	b, err := json.Marshal(x)
	if err != nil {
		return "", fmt.Errorf("encoding a run: %w", err)
	}
	return string(b), nil
}

// decode is the inverse of encode; what was never written stays zero.
func decode(text string, into any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), into)
}

func runOf(r crondb.Run) (Run, error) {
	run := Run{
		ID: r.ID, JobID: r.JobID, JobName: r.JobName, Trigger: Trigger(r.Cause), ScheduledAt: at(r.ScheduledAt), StartedAt: at(r.StartedAt),
		FinishedAt: at(r.FinishedAt), Status: Status(r.Status), Completion: Completion(r.Completion), Reason: Reason(r.Reason), Error: r.Error,
		Requested: modelOf(r.Requested), Model: modelOf(r.Model), FallbackUsed: r.FallbackUsed, FallbackReason: llm.Reason(r.FallbackReason),
		CostMicros: r.CostMicros, Excerpt: r.Excerpt,
	}
	if err := decode(r.Usage, &run.Usage); err != nil {
		return run, fmt.Errorf("run %s: %w", r.ID, err)
	}
	if err := decode(r.Receipts, &run.Receipts); err != nil {
		return run, fmt.Errorf("run %s: %w", r.ID, err)
	}
	return run, nil
}

func letterRow(l letter) (crondb.Letter, error) {
	to, err := json.Marshal(l.to)
	if err != nil {
		return crondb.Letter{}, fmt.Errorf("encoding a message: %w", err)
	}
	media := ""
	if len(l.media) > 0 {
		if media, err = encode(l.media); err != nil {
			return crondb.Letter{}, err
		}
	}
	return crondb.Letter{
		Key: l.key, Kind: string(l.kind), JobID: l.job, RunID: l.run, To: string(to), Text: l.text, Media: media, CreatedAt: ms(l.since),
	}, nil
}

func letterOf(r crondb.Letter) (letter, error) {
	l := letter{key: r.Key, kind: letterKind(r.Kind), job: r.JobID, run: r.RunID, text: r.Text, since: at(r.CreatedAt)}
	err := json.Unmarshal([]byte(r.To), &l.to)
	return l, err
}

// putLetters stores what is to be said.
func putLetters(ctx context.Context, q *crondb.Queries, letters []letter, now time.Time) error {
	for _, l := range letters {
		l.since = now
		row, err := letterRow(l)
		if err != nil {
			return err
		}
		if err := q.PutLetter(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// Move follows a conversation to its new id, as Telegram groups get one when they become supergroups:
// jobs that were made in it or report to it. Delivery already follows for what it has under way.
func (s *Store) Move(ctx context.Context, from chat.Address, conversation string) error {
	rows, err := s.q.Jobs(ctx, true)
	if err != nil {
		return fmt.Errorf("moving tasks: %w", err)
	}
	for _, row := range rows {
		job, err := jobOf(row)
		if err != nil {
			return err
		}
		moved := false
		for _, a := range []*chat.Address{&job.Origin, &job.Delivery.To} {
			if a.Channel == from.Channel && a.Account == from.Account && a.Conversation == from.Conversation {
				a.Conversation, moved = conversation, true
			}
		}
		if !moved {
			continue
		}
		if row, err = rowOf(job); err != nil {
			return err
		}
		if _, err := s.q.SetDefinition(context.WithoutCancel(ctx), row); err != nil {
			return fmt.Errorf("moving task %s: %w", job.ID, err)
		}
	}
	return nil
}
