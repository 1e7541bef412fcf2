-- +goose Up
-- One row: what people chose for the whole bot, and how the last attempt ended.
CREATE TABLE tts_prefs (
  id            INTEGER PRIMARY KEY CHECK (id = 1),
  auto          TEXT    NOT NULL DEFAULT '',
  provider      TEXT    NOT NULL DEFAULT '',
  max_length    INTEGER NOT NULL DEFAULT 0,
  last_at       INTEGER NOT NULL DEFAULT 0,
  last_provider TEXT    NOT NULL DEFAULT '',
  last_problem  TEXT    NOT NULL DEFAULT ''
) STRICT;
INSERT INTO tts_prefs (id) VALUES (1);

-- The answer of a conversation that /tts latest spoke last; of the text only a hash is kept.
CREATE TABLE tts_latest (
  session_key TEXT    PRIMARY KEY,
  hash        BLOB    NOT NULL,
  at          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tts_latest_at ON tts_latest (at);

-- +goose Down
DROP TABLE tts_latest;
DROP TABLE tts_prefs;
