-- Times are integer milliseconds since 1970, 0 = none.

-- +goose Up

-- n rises with every change of any other table but refresh_locks.
CREATE TABLE revision (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    n  INTEGER NOT NULL
) STRICT;

INSERT INTO revision (id, n) VALUES (1, 1);

CREATE TABLE profiles (
    id             TEXT    NOT NULL PRIMARY KEY,
    kind           TEXT    NOT NULL,
    secret         TEXT    NOT NULL, -- key, access token or bearer token
    refresh        TEXT    NOT NULL,
    expires_at     INTEGER NOT NULL,
    email          TEXT    NOT NULL,
    account_id     TEXT    NOT NULL,
    project_id     TEXT    NOT NULL,
    enterprise_url TEXT    NOT NULL,
    extra_json     TEXT    NOT NULL, -- fields of an import that we do not know
    version        INTEGER NOT NULL, -- the revision that last changed the row
    updated_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE profile_orders (
    provider      TEXT NOT NULL PRIMARY KEY,
    profiles_json TEXT NOT NULL -- [] = use no profile
) STRICT, WITHOUT ROWID;

CREATE TABLE last_good (
    provider TEXT NOT NULL PRIMARY KEY,
    profile  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The health of a profile for one model, or for all (model = '').
CREATE TABLE health (
    profile             TEXT    NOT NULL,
    model               TEXT    NOT NULL,
    last_used           INTEGER NOT NULL,
    last_failure_at     INTEGER NOT NULL,
    error_count         INTEGER NOT NULL,
    billing_count       INTEGER NOT NULL,
    auth_count          INTEGER NOT NULL,
    failure_counts_json TEXT    NOT NULL,
    cooldown_since      INTEGER NOT NULL,
    cooldown_until      INTEGER NOT NULL,
    cooldown_reason     TEXT    NOT NULL,
    cooldown_detail     TEXT    NOT NULL,
    cooldown_stated     INTEGER NOT NULL,
    disabled_since      INTEGER NOT NULL,
    disabled_until      INTEGER NOT NULL,
    disabled_reason     TEXT    NOT NULL,
    disabled_detail     TEXT    NOT NULL,
    disabled_stated     INTEGER NOT NULL,
    PRIMARY KEY (profile, model)
) STRICT, WITHOUT ROWID;

-- The probe throttle. previous_at is what a claim that was given back restores.
CREATE TABLE probes (
    provider    TEXT    NOT NULL PRIMARY KEY,
    at          INTEGER NOT NULL,
    previous_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE refresh_locks (
    profile  TEXT    NOT NULL PRIMARY KEY,
    holder   TEXT    NOT NULL,
    taken_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
