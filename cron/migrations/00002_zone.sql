-- +goose Up
-- The zone that the next run was reckoned in, where it is the configured one; '' = the task's own, or none matters.
ALTER TABLE cron_jobs ADD COLUMN plan_zone TEXT NOT NULL DEFAULT '';
CREATE INDEX cron_jobs_zone ON cron_jobs (plan_zone) WHERE enabled = 1 AND next_run_at IS NOT NULL AND plan_zone <> '';
-- When the scheduler switched the task off.
ALTER TABLE cron_jobs ADD COLUMN disabled_at INTEGER;
-- Files that go with a result: a JSON array, '' = none.
ALTER TABLE cron_letters ADD COLUMN media_json TEXT NOT NULL DEFAULT '';
