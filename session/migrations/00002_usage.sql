-- +goose Up
-- The model that answered last, and when the counters of /usage began anew.
ALTER TABLE sessions ADD COLUMN last_model  TEXT    NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN usage_since INTEGER NOT NULL DEFAULT 0;

-- What was used on a day (YYYY-MM-DD, of the agent's zone), by model and by what it was for.
CREATE TABLE usage_daily (
    day         TEXT    NOT NULL,
    agent_id    TEXT    NOT NULL,
    model_ref   TEXT    NOT NULL,
    purpose     TEXT    NOT NULL, -- message, cron, heartbeat, probe, summary
    turns       INTEGER NOT NULL DEFAULT 0,
    input       INTEGER NOT NULL DEFAULT 0,
    output      INTEGER NOT NULL DEFAULT 0,
    cache_read  INTEGER NOT NULL DEFAULT 0,
    cache_write INTEGER NOT NULL DEFAULT 0,
    cost_micros INTEGER NOT NULL DEFAULT 0, -- millionths of a US dollar, of the turns with a known price
    unpriced    INTEGER NOT NULL DEFAULT 0, -- turns whose price is unknown
    PRIMARY KEY (day, agent_id, model_ref, purpose)
) STRICT, WITHOUT ROWID;

-- What was written into a transcript by a run of something else, so that it is written once.
CREATE TABLE transcript_runs (
    session_id TEXT    NOT NULL,
    run_id     TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (session_id, run_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_parent ON sessions (parent_key) WHERE parent_key <> '';
CREATE INDEX session_archive_key ON session_archive (key, ended_at);

-- +goose Down
DROP INDEX session_archive_key;
DROP INDEX sessions_parent;
DROP TABLE transcript_runs;
DROP TABLE usage_daily;
ALTER TABLE sessions DROP COLUMN usage_since;
ALTER TABLE sessions DROP COLUMN last_model;
