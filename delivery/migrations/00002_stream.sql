-- +goose Up
ALTER TABLE previews ADD COLUMN stream INTEGER NOT NULL DEFAULT 0 CHECK (stream IN (0, 1));

-- +goose Down
ALTER TABLE previews DROP COLUMN stream;
