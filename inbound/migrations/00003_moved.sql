-- +goose Up
-- Conversations that have a new id, and the one they had before.
CREATE TABLE moved_conversations (
  channel      TEXT    NOT NULL,
  account      TEXT    NOT NULL,
  conversation TEXT    NOT NULL,
  former       TEXT    NOT NULL,
  at           INTEGER NOT NULL,
  PRIMARY KEY (channel, account, conversation)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE moved_conversations;
