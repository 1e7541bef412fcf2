-- +goose Up
CREATE TABLE outbox (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  idem_key      TEXT    NOT NULL UNIQUE,
  turn_id       TEXT    NOT NULL,
  seq           INTEGER NOT NULL,
  kind          TEXT    NOT NULL,
  channel       TEXT    NOT NULL,
  account       TEXT    NOT NULL,
  dest_key      TEXT    NOT NULL,
  body_json     TEXT    NOT NULL,
  state         TEXT    NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'claimed', 'sent', 'failed', 'unknown')),
  attempts      INTEGER NOT NULL DEFAULT 0,
  edit_id       TEXT    NOT NULL DEFAULT '',
  receipts_json TEXT    NOT NULL DEFAULT '[]',
  error         TEXT    NOT NULL DEFAULT '',
  created_at    INTEGER NOT NULL,
  claimed_at    INTEGER,
  sent_at       INTEGER
) STRICT;
CREATE INDEX outbox_open ON outbox (dest_key, id) WHERE state IN ('pending', 'claimed');
CREATE INDEX outbox_turn ON outbox (turn_id);

CREATE TABLE previews (
  turn_id    TEXT    PRIMARY KEY,
  dest_json  TEXT    NOT NULL,
  message_id TEXT    NOT NULL,
  at         INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE previews;
DROP TABLE outbox;
