-- +goose Up
CREATE TABLE inbound (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  event_key    TEXT    NOT NULL UNIQUE,
  channel      TEXT    NOT NULL,
  account      TEXT    NOT NULL,
  conversation TEXT    NOT NULL,
  message_id   TEXT    NOT NULL,
  state        TEXT    NOT NULL DEFAULT 'received' CHECK (state IN ('received', 'dispatched', 'done', 'failed', 'dead')),
  attempts     INTEGER NOT NULL DEFAULT 0,
  payload_json TEXT    NOT NULL,
  error        TEXT    NOT NULL DEFAULT '',
  received_at  INTEGER NOT NULL,
  done_at      INTEGER
) STRICT;
CREATE INDEX inbound_open ON inbound (id) WHERE state IN ('received', 'dispatched');
CREATE INDEX inbound_waiting ON inbound (channel, account, conversation, message_id) WHERE state = 'received';

CREATE TABLE inbound_keys (
  event_key TEXT    PRIMARY KEY,
  at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX inbound_keys_at ON inbound_keys (at);

CREATE TABLE pairing_requests (
  channel      TEXT    NOT NULL,
  account      TEXT    NOT NULL,
  sender       TEXT    NOT NULL,
  name         TEXT    NOT NULL,
  address_json TEXT    NOT NULL,
  code_hash    BLOB    NOT NULL,
  expires_at   INTEGER NOT NULL,
  PRIMARY KEY (channel, account, sender)
) STRICT;

CREATE TABLE pairing_allow (
  channel     TEXT    NOT NULL,
  account     TEXT    NOT NULL,
  sender      TEXT    NOT NULL,
  name        TEXT    NOT NULL,
  approved_by TEXT    NOT NULL,
  at          INTEGER NOT NULL,
  PRIMARY KEY (channel, account, sender)
) STRICT;

CREATE TABLE pairing_misses (
  channel TEXT    NOT NULL,
  at      INTEGER NOT NULL
) STRICT;

CREATE TABLE owners (
  channel TEXT    NOT NULL,
  sender  TEXT    NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (channel, sender)
) STRICT;

CREATE TABLE cursors (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  name    TEXT NOT NULL,
  value   TEXT NOT NULL,
  PRIMARY KEY (channel, account, name)
) STRICT;

-- +goose Down
DROP TABLE cursors;
DROP TABLE owners;
DROP TABLE pairing_misses;
DROP TABLE pairing_allow;
DROP TABLE pairing_requests;
DROP TABLE inbound_keys;
DROP TABLE inbound;
