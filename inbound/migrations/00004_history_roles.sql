-- +goose Up
-- The roles that the writer of an overheard line had, ids with blanks between them: where a role lets
-- people in, only they tell later whether the writer is one of them.
ALTER TABLE history_buffer ADD COLUMN roles TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE history_buffer DROP COLUMN roles;
