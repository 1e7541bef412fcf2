-- +goose Up
-- What stand-ins cost, by day. Millionths of a dollar; unpriced counts answers whose price is unknown.
CREATE TABLE budget_fallback (
  day         TEXT    PRIMARY KEY,
  answers     INTEGER NOT NULL DEFAULT 0,
  cost_micros INTEGER NOT NULL DEFAULT 0,
  unpriced    INTEGER NOT NULL DEFAULT 0
) STRICT;
