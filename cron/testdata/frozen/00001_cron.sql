-- +goose Up
CREATE TABLE cron_jobs (
  id              TEXT    PRIMARY KEY,
  definition_json TEXT    NOT NULL,
  revision        INTEGER NOT NULL DEFAULT 1,
  -- Counts the times people decided anew when the job runs; run_plan is its value at the last claim.
  plan            INTEGER NOT NULL DEFAULT 1,
  run_plan        INTEGER NOT NULL DEFAULT 0,
  enabled         INTEGER NOT NULL,
  once            INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  -- What is next: the moment, and the slot of the schedule it stands for (a retry's is in the past).
  next_run_at     INTEGER,
  slot_at         INTEGER,
  -- What is now: a claim that has to be renewed.
  run_id          TEXT,
  running_since   INTEGER,
  lease_until     INTEGER,
  -- What was.
  runs            INTEGER NOT NULL DEFAULT 0,
  tries           INTEGER NOT NULL DEFAULT 0,
  last_slot_at    INTEGER,
  last_run_at     INTEGER,
  last_status     TEXT    NOT NULL DEFAULT '',
  last_completion TEXT    NOT NULL DEFAULT '',
  last_error      TEXT    NOT NULL DEFAULT '',
  last_model      TEXT    NOT NULL DEFAULT '',
  last_fallback   INTEGER NOT NULL DEFAULT 0,
  errors          INTEGER NOT NULL DEFAULT 0,
  skips           INTEGER NOT NULL DEFAULT 0,
  undelivered     INTEGER NOT NULL DEFAULT 0,
  schedule_errors INTEGER NOT NULL DEFAULT 0,
  alerted_at      INTEGER,
  disabled_reason TEXT    NOT NULL DEFAULT ''
) STRICT;
-- Holds all that a look at the clock needs.
CREATE INDEX cron_jobs_waiting ON cron_jobs (next_run_at, id, once, running_since, last_slot_at) WHERE enabled = 1 AND next_run_at IS NOT NULL;
CREATE INDEX cron_jobs_running ON cron_jobs (lease_until) WHERE running_since IS NOT NULL;

CREATE TABLE cron_runs (
  id              TEXT    PRIMARY KEY,
  job_id          TEXT    NOT NULL,
  seq             INTEGER NOT NULL,
  job_name        TEXT    NOT NULL,
  cause           TEXT    NOT NULL,
  scheduled_at    INTEGER NOT NULL,
  started_at      INTEGER NOT NULL,
  finished_at     INTEGER,
  status          TEXT    NOT NULL CHECK (status IN ('running', 'ok', 'error', 'skipped')),
  completion      TEXT    NOT NULL DEFAULT '' CHECK (completion IN ('', 'pending', 'succeeded', 'failed', 'unknown')),
  reason          TEXT    NOT NULL DEFAULT '',
  error           TEXT    NOT NULL DEFAULT '',
  requested_model TEXT    NOT NULL DEFAULT '',
  model_ref       TEXT    NOT NULL DEFAULT '',
  fallback_used   INTEGER NOT NULL DEFAULT 0,
  fallback_reason TEXT    NOT NULL DEFAULT '',
  usage_json      TEXT    NOT NULL DEFAULT '',
  cost_micros     INTEGER,
  output_excerpt  TEXT    NOT NULL DEFAULT '',
  receipts_json   TEXT    NOT NULL DEFAULT '',
  UNIQUE (job_id, seq)
) STRICT;
CREATE INDEX cron_runs_started ON cron_runs (started_at);

-- What is to be said, from the transaction that decided it until somebody took it.
CREATE TABLE cron_letters (
  idem_key   TEXT    PRIMARY KEY,
  kind       TEXT    NOT NULL CHECK (kind IN ('result', 'alert', 'owner')),
  job_id     TEXT    NOT NULL,
  run_id     TEXT    NOT NULL,
  to_json    TEXT    NOT NULL,
  text       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  next_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX cron_letters_next ON cron_letters (next_at);

-- +goose Down
DROP TABLE cron_letters;
DROP TABLE cron_runs;
DROP TABLE cron_jobs;
