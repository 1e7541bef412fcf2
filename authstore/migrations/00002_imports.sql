-- +goose Up

-- Where the secret lies when it is not in this file, as {"source": "env", "id": "NAME"}; '' = it is.
ALTER TABLE profiles ADD COLUMN reference_json TEXT NOT NULL DEFAULT '';

-- One row for every file or database whose credentials were taken over (spec/imports.md).
CREATE TABLE import_receipts (
    source      TEXT    NOT NULL PRIMARY KEY, -- absolute path
    size        INTEGER NOT NULL,
    sha256      TEXT    NOT NULL, -- of what was read
    added       INTEGER NOT NULL,
    kept        INTEGER NOT NULL, -- profiles that the store held already
    withheld    INTEGER NOT NULL, -- sign-ins that were not asked for
    rejected    INTEGER NOT NULL,
    imported_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
