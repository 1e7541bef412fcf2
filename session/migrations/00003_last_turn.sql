-- +goose Up
-- What the last answered turn used, and since when another model than the selected one answers.
ALTER TABLE sessions ADD COLUMN last_turn_in          INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN last_turn_out         INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN last_turn_cost_micros INTEGER NOT NULL DEFAULT -1; -- millionths of a US dollar, -1 = unknown
ALTER TABLE sessions ADD COLUMN fallback_notice_since INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE sessions DROP COLUMN fallback_notice_since;
ALTER TABLE sessions DROP COLUMN last_turn_cost_micros;
ALTER TABLE sessions DROP COLUMN last_turn_out;
ALTER TABLE sessions DROP COLUMN last_turn_in;
