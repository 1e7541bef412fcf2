-- name: GetSession :one
SELECT * FROM sessions WHERE key = @key;

-- name: ListSessions :many
SELECT * FROM sessions
WHERE (CAST(@agent_id AS TEXT) = '' OR agent_id = @agent_id)
  AND (CAST(@source AS TEXT) = '' OR model_override_source = @source)
  AND (NOT CAST(@fallen_back AS INTEGER) OR fallback_notice_active <> '')
  AND (CAST(@channel AS TEXT) = '' OR json_extract(address_json, '$.channel') = @channel)
ORDER BY updated_at DESC, key
LIMIT @most;

-- name: PutSession :exec
INSERT INTO sessions (
    key, session_id, agent_id, parent_key, chat_type, address_json, started_at, last_interaction_at, updated_at,
    model_override, model_override_source, model_override_origin,
    auth_profile_override, auth_profile_override_source, auth_profile_override_compaction_count,
    fallback_notice_selected, fallback_notice_active, fallback_notice_reason, live_model_switch_pending,
    think, verbose, usage_mode, queue_json, tts_auto,
    compaction_count, tokens_in, tokens_out, tokens_context, status, last_model, usage_since,
    last_turn_in, last_turn_out, last_turn_cost_micros, fallback_notice_since
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    session_id = excluded.session_id, parent_key = excluded.parent_key, chat_type = excluded.chat_type,
    address_json = excluded.address_json, started_at = excluded.started_at,
    last_interaction_at = excluded.last_interaction_at, updated_at = excluded.updated_at,
    model_override = excluded.model_override, model_override_source = excluded.model_override_source,
    model_override_origin = excluded.model_override_origin,
    auth_profile_override = excluded.auth_profile_override,
    auth_profile_override_source = excluded.auth_profile_override_source,
    auth_profile_override_compaction_count = excluded.auth_profile_override_compaction_count,
    fallback_notice_selected = excluded.fallback_notice_selected,
    fallback_notice_active = excluded.fallback_notice_active,
    fallback_notice_reason = excluded.fallback_notice_reason,
    live_model_switch_pending = excluded.live_model_switch_pending,
    think = excluded.think, verbose = excluded.verbose, usage_mode = excluded.usage_mode,
    queue_json = excluded.queue_json, tts_auto = excluded.tts_auto,
    compaction_count = excluded.compaction_count, tokens_in = excluded.tokens_in, tokens_out = excluded.tokens_out,
    tokens_context = excluded.tokens_context, status = excluded.status,
    last_model = excluded.last_model, usage_since = excluded.usage_since,
    last_turn_in = excluded.last_turn_in, last_turn_out = excluded.last_turn_out,
    last_turn_cost_micros = excluded.last_turn_cost_micros, fallback_notice_since = excluded.fallback_notice_since;

-- name: DeleteSession :exec
DELETE FROM sessions WHERE key = @key;

-- name: TouchSession :execrows
UPDATE sessions SET last_interaction_at = max(last_interaction_at, CAST(@at AS INTEGER)), updated_at = @now WHERE key = @key;

-- name: ClearSwitch :execrows
UPDATE sessions SET live_model_switch_pending = 0 WHERE key = @key AND live_model_switch_pending <> 0;

-- name: ResolveAlias :one
SELECT key FROM session_aliases WHERE old_key = @old_key;

-- name: PutAlias :exec
INSERT INTO session_aliases (old_key, key) VALUES (?, ?)
ON CONFLICT (old_key) DO UPDATE SET key = excluded.key;

-- name: MoveAliases :exec
UPDATE session_aliases SET key = @new_key WHERE key = @key;

-- name: DropAlias :exec
DELETE FROM session_aliases WHERE old_key = @old_key;

-- name: ListChildren :many
SELECT key FROM sessions WHERE parent_key = @parent_key ORDER BY key;

-- name: MoveDecisions :exec
UPDATE decisions SET session_key = @new_key WHERE session_key = @key;

-- name: MoveArchive :exec
UPDATE session_archive SET key = @new_key WHERE key = @key;

-- name: Archive :exec
INSERT INTO session_archive (session_id, key, started_at, ended_at) VALUES (?, ?, ?, ?)
ON CONFLICT (session_id) DO NOTHING;

-- name: ListArchive :many
SELECT session_id, started_at, ended_at FROM session_archive WHERE key = @key ORDER BY ended_at DESC, started_at DESC LIMIT @most;

-- name: FirstStarted :one
SELECT CAST(coalesce(min(started_at), 0) AS INTEGER) FROM session_archive WHERE key = @key;

-- name: LastSeq :one
SELECT CAST(coalesce(max(seq), 0) AS INTEGER) FROM transcript WHERE session_id = @session_id;

-- name: AppendEntry :exec
INSERT INTO transcript (session_id, seq, role, kind, content_json, model_ref, usage_json, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: LastCompaction :one
SELECT * FROM transcript WHERE session_id = @session_id AND kind = 'compaction' ORDER BY seq DESC LIMIT 1;

-- name: MessagesFrom :many
SELECT * FROM transcript WHERE session_id = @session_id AND seq >= @seq AND kind = 'message' ORDER BY seq;

-- name: EntriesBefore :many
SELECT * FROM transcript WHERE session_id = @session_id AND seq < @seq ORDER BY seq DESC LIMIT @most;

-- name: LastDecision :one
SELECT CAST(coalesce(max(seq), 0) AS INTEGER) FROM decisions WHERE session_key = @session_key;

-- name: AppendDecision :exec
INSERT INTO decisions (session_key, seq, record_json, at) VALUES (?, ?, ?, ?);

-- name: PruneDecisions :exec
DELETE FROM decisions WHERE session_key = @session_key AND seq <= @seq;

-- name: ListDecisions :many
SELECT record_json, at FROM decisions WHERE session_key = @session_key ORDER BY seq DESC LIMIT @most;

-- name: DropDecisions :exec
DELETE FROM decisions WHERE session_key = @session_key;

-- name: AddUsage :exec
INSERT INTO usage_daily (day, agent_id, model_ref, purpose, turns, input, output, cache_read, cache_write, cost_micros, unpriced)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (day, agent_id, model_ref, purpose) DO UPDATE SET
    turns = turns + excluded.turns, input = input + excluded.input, output = output + excluded.output,
    cache_read = cache_read + excluded.cache_read, cache_write = cache_write + excluded.cache_write,
    cost_micros = cost_micros + excluded.cost_micros, unpriced = unpriced + excluded.unpriced;

-- name: ListUsage :many
SELECT * FROM usage_daily
WHERE day >= @since AND (CAST(@agent_id AS TEXT) = '' OR agent_id = @agent_id)
ORDER BY day, agent_id, model_ref, purpose;

-- name: PruneUsage :exec
DELETE FROM usage_daily WHERE day < @before;

-- name: MarkRun :execrows
INSERT INTO transcript_runs (session_id, run_id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: PruneRuns :exec
DELETE FROM transcript_runs WHERE at < @before;

-- name: DeleteRuns :exec
DELETE FROM transcript_runs WHERE session_id = @session_id;

-- name: DeleteTranscript :exec
DELETE FROM transcript WHERE session_id = @session_id;

-- name: DeleteArchive :exec
DELETE FROM session_archive WHERE key = @key;

-- name: DeleteAliasesOf :exec
DELETE FROM session_aliases WHERE key = @key;

-- name: DeleteArchived :exec
DELETE FROM session_archive WHERE session_id = @session_id;

-- name: ListIdle :many
SELECT * FROM sessions
WHERE updated_at < @before
  AND (last_interaction_at = 0 AND parent_key = '' AND chat_type NOT IN ('group', 'channel')
    OR key LIKE 'agent:%:cron:%' OR key LIKE 'agent:%:cli:%' OR key LIKE 'agent:%:heartbeat')
ORDER BY updated_at, key LIMIT @most;

-- name: ListArchivedBefore :many
SELECT session_id, key FROM session_archive WHERE ended_at < @before AND key LIKE 'agent:%:cron:%' LIMIT @most;
