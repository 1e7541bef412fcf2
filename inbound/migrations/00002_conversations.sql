-- +goose Up
-- lead is the first row of several that are answered as one, 0 = the row itself; history_json is what
-- was overheard before the message.
ALTER TABLE inbound ADD COLUMN lead INTEGER NOT NULL DEFAULT 0;
ALTER TABLE inbound ADD COLUMN history_json TEXT NOT NULL DEFAULT '';
CREATE INDEX inbound_lead ON inbound (lead) WHERE lead != 0;
-- overheard tells that the message was not for the bot, as far as its first event said.
ALTER TABLE inbound_keys ADD COLUMN overheard INTEGER NOT NULL DEFAULT 0;
CREATE INDEX inbound_dead ON inbound (id) WHERE state = 'dead';

CREATE TABLE seen (
  channel      TEXT    NOT NULL,
  account      TEXT    NOT NULL,
  conversation TEXT    NOT NULL,
  thread       TEXT    NOT NULL,
  kind         TEXT    NOT NULL,
  space        TEXT    NOT NULL,
  last_id      TEXT    NOT NULL,
  last_at      INTEGER NOT NULL,
  active_at    INTEGER NOT NULL,
  PRIMARY KEY (channel, account, conversation, thread)
) STRICT, WITHOUT ROWID;

CREATE TABLE thread_participation (
  channel      TEXT    NOT NULL,
  account      TEXT    NOT NULL,
  conversation TEXT    NOT NULL,
  thread       TEXT    NOT NULL,
  at           INTEGER NOT NULL,
  PRIMARY KEY (channel, account, conversation, thread)
) STRICT, WITHOUT ROWID;

CREATE TABLE history_buffer (
  seq          INTEGER PRIMARY KEY AUTOINCREMENT,
  channel      TEXT    NOT NULL,
  account      TEXT    NOT NULL,
  conversation TEXT    NOT NULL,
  thread       TEXT    NOT NULL,
  message_id   TEXT    NOT NULL,
  sender       TEXT    NOT NULL,
  name         TEXT    NOT NULL,
  bot          INTEGER NOT NULL,
  text         TEXT    NOT NULL,
  at           INTEGER NOT NULL
) STRICT;
CREATE INDEX history_buffer_place ON history_buffer (channel, account, conversation, thread, seq);
CREATE INDEX history_buffer_message ON history_buffer (channel, account, conversation, message_id);

CREATE TABLE callbacks (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  token        TEXT    NOT NULL UNIQUE,
  payload_json TEXT    NOT NULL,
  until        INTEGER NOT NULL
) STRICT;
CREATE INDEX callbacks_until ON callbacks (until);

-- +goose Down
DROP TABLE callbacks;
DROP TABLE history_buffer;
DROP TABLE thread_participation;
DROP TABLE seen;
DROP INDEX inbound_dead;
ALTER TABLE inbound_keys DROP COLUMN overheard;
DROP INDEX inbound_lead;
ALTER TABLE inbound DROP COLUMN history_json;
ALTER TABLE inbound DROP COLUMN lead;
