-- +goose Up
CREATE TABLE heartbeat_state (
  agent_id  TEXT    PRIMARY KEY,
  -- The checklist; NULL = there is none. revision counts its changes.
  scratch   TEXT,
  revision  INTEGER NOT NULL DEFAULT 0,
  -- What came of the last one, and how they have been going.
  last_json TEXT    NOT NULL DEFAULT '',
  next_at   INTEGER
) STRICT;

-- What scheduled tasks want an agent to notice, until a heartbeat took it along.
CREATE TABLE heartbeat_events (
  id       TEXT    PRIMARY KEY,
  agent_id TEXT    NOT NULL,
  text     TEXT    NOT NULL,
  at       INTEGER NOT NULL
) STRICT;
CREATE INDEX heartbeat_events_agent ON heartbeat_events (agent_id, at, id);
