-- +goose Up
-- directed tells that what a message says to the bot itself, such as which model to use, is done; thread is
-- where it is answered, sender who wrote it, and said the fingerprint of its text: what it said is not kept,
-- and an edit is news only if it says something else. 0 = its edits are no news.
ALTER TABLE inbound ADD COLUMN directed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE inbound ADD COLUMN thread TEXT NOT NULL DEFAULT '';
ALTER TABLE inbound ADD COLUMN sender TEXT NOT NULL DEFAULT '';
ALTER TABLE inbound ADD COLUMN said INTEGER NOT NULL DEFAULT 0;
CREATE INDEX inbound_said ON inbound (channel, account, conversation, message_id) WHERE said != 0;

-- +goose Down
DROP INDEX inbound_said;
ALTER TABLE inbound DROP COLUMN said;
ALTER TABLE inbound DROP COLUMN sender;
ALTER TABLE inbound DROP COLUMN thread;
ALTER TABLE inbound DROP COLUMN directed;
