-- Times are integer milliseconds since 1970, 0 = none.

-- +goose Up
CREATE TABLE sessions (
    key                 TEXT    NOT NULL PRIMARY KEY,
    session_id          TEXT    NOT NULL,
    agent_id            TEXT    NOT NULL,
    parent_key          TEXT    NOT NULL,
    chat_type           TEXT    NOT NULL,
    address_json        TEXT    NOT NULL,
    started_at          INTEGER NOT NULL,
    last_interaction_at INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,

    model_override        TEXT NOT NULL DEFAULT '',
    model_override_source TEXT NOT NULL DEFAULT '',
    model_override_origin TEXT NOT NULL DEFAULT '',

    auth_profile_override                  TEXT    NOT NULL DEFAULT '',
    auth_profile_override_source           TEXT    NOT NULL DEFAULT '',
    auth_profile_override_compaction_count INTEGER NOT NULL DEFAULT 0,

    fallback_notice_selected TEXT NOT NULL DEFAULT '',
    fallback_notice_active   TEXT NOT NULL DEFAULT '',
    fallback_notice_reason   TEXT NOT NULL DEFAULT '',

    live_model_switch_pending INTEGER NOT NULL DEFAULT 0,

    think      TEXT NOT NULL DEFAULT '',
    verbose    TEXT NOT NULL DEFAULT '',
    usage_mode TEXT NOT NULL DEFAULT '',
    queue_json TEXT NOT NULL DEFAULT '',
    tts_auto   TEXT NOT NULL DEFAULT '',

    compaction_count INTEGER NOT NULL DEFAULT 0,
    tokens_in        INTEGER NOT NULL DEFAULT 0,
    tokens_out       INTEGER NOT NULL DEFAULT 0,
    tokens_context   INTEGER NOT NULL DEFAULT 0,
    status           TEXT    NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_updated ON sessions (updated_at);

-- Keys that a conversation had before its platform renamed it.
CREATE TABLE session_aliases (
    old_key TEXT NOT NULL PRIMARY KEY,
    key     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Session ids that a reset ended. Their transcripts stay.
CREATE TABLE session_archive (
    session_id TEXT    NOT NULL PRIMARY KEY,
    key        TEXT    NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Append-only.
CREATE TABLE transcript (
    session_id   TEXT    NOT NULL,
    seq          INTEGER NOT NULL,
    role         TEXT    NOT NULL,
    kind         TEXT    NOT NULL, -- message, compaction, note
    content_json TEXT    NOT NULL,
    model_ref    TEXT    NOT NULL,
    usage_json   TEXT    NOT NULL, -- '' = none
    at           INTEGER NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT;

CREATE INDEX transcript_compactions ON transcript (session_id, seq) WHERE kind = 'compaction';

CREATE TABLE decisions (
    session_key TEXT    NOT NULL,
    seq         INTEGER NOT NULL,
    record_json TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (session_key, seq)
) STRICT;
