-- name: Revision :one
SELECT n FROM revision WHERE id = 1;

-- name: BumpRevision :one
UPDATE revision SET n = n + 1 WHERE id = 1 RETURNING n;

-- name: ListProfiles :many
SELECT id, kind, expires_at, secret <> '' AS has_secret, refresh <> '' AS has_refresh, reference_json
FROM profiles ORDER BY id;

-- name: GetProfile :one
SELECT * FROM profiles WHERE id = @id;

-- name: PutProfile :exec
INSERT INTO profiles (
    id, kind, secret, refresh, expires_at, email, account_id, project_id, enterprise_url, extra_json, version, updated_at,
    reference_json
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    kind = excluded.kind, secret = excluded.secret, refresh = excluded.refresh, expires_at = excluded.expires_at,
    email = excluded.email, account_id = excluded.account_id, project_id = excluded.project_id,
    enterprise_url = excluded.enterprise_url, extra_json = excluded.extra_json,
    version = excluded.version, updated_at = excluded.updated_at, reference_json = excluded.reference_json;

-- name: SwapTokens :execrows
UPDATE profiles
SET secret = @secret, refresh = @refresh, expires_at = @expires_at, version = @new_version, updated_at = @now
WHERE id = @id AND version = @old_version;

-- name: DeleteProfile :execrows
DELETE FROM profiles WHERE id = @id;

-- name: ListOrders :many
SELECT * FROM profile_orders;

-- name: PutOrder :exec
INSERT INTO profile_orders (provider, profiles_json) VALUES (?, ?)
ON CONFLICT (provider) DO UPDATE SET profiles_json = excluded.profiles_json;

-- name: DeleteOrder :exec
DELETE FROM profile_orders WHERE provider = @provider;

-- name: ListLastGood :many
SELECT * FROM last_good;

-- name: PutLastGood :exec
INSERT INTO last_good (provider, profile) VALUES (?, ?)
ON CONFLICT (provider) DO UPDATE SET profile = excluded.profile;

-- name: DeleteLastGood :exec
DELETE FROM last_good WHERE profile = @profile;

-- name: ListHealth :many
SELECT * FROM health;

-- name: PutHealth :exec
INSERT INTO health (
    profile, model, last_used, last_failure_at, error_count, billing_count, auth_count, failure_counts_json,
    cooldown_since, cooldown_until, cooldown_reason, cooldown_detail, cooldown_stated,
    disabled_since, disabled_until, disabled_reason, disabled_detail, disabled_stated
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (profile, model) DO UPDATE SET
    last_used = excluded.last_used, last_failure_at = excluded.last_failure_at, error_count = excluded.error_count,
    billing_count = excluded.billing_count, auth_count = excluded.auth_count,
    failure_counts_json = excluded.failure_counts_json,
    cooldown_since = excluded.cooldown_since, cooldown_until = excluded.cooldown_until,
    cooldown_reason = excluded.cooldown_reason, cooldown_detail = excluded.cooldown_detail,
    cooldown_stated = excluded.cooldown_stated,
    disabled_since = excluded.disabled_since, disabled_until = excluded.disabled_until,
    disabled_reason = excluded.disabled_reason, disabled_detail = excluded.disabled_detail,
    disabled_stated = excluded.disabled_stated;

-- name: DeleteHealthRow :exec
DELETE FROM health WHERE profile = @profile AND model = @model;

-- name: DeleteHealth :exec
DELETE FROM health WHERE profile = @profile;

-- name: ListProbes :many
SELECT provider, at FROM probes;

-- name: GetProbe :one
SELECT at FROM probes WHERE provider = @provider;

-- name: PutProbe :exec
INSERT INTO probes (provider, at, previous_at) VALUES (@provider, @at, @previous_at)
ON CONFLICT (provider) DO UPDATE SET at = excluded.at, previous_at = excluded.previous_at;

-- name: ReleaseProbe :execrows
UPDATE probes SET at = previous_at WHERE provider = @provider AND at = @at;

-- name: GetRefreshLock :one
SELECT taken_at FROM refresh_locks WHERE profile = @profile;

-- name: PutRefreshLock :exec
INSERT INTO refresh_locks (profile, holder, taken_at) VALUES (@profile, @holder, @taken_at)
ON CONFLICT (profile) DO UPDATE SET holder = excluded.holder, taken_at = excluded.taken_at;

-- name: DropRefreshLock :exec
DELETE FROM refresh_locks WHERE profile = @profile AND holder = @holder;

-- name: GetReceipt :one
SELECT * FROM import_receipts WHERE source = @source;

-- name: PutReceipt :exec
INSERT INTO import_receipts (source, size, sha256, added, kept, withheld, rejected, imported_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source) DO UPDATE SET
    size = excluded.size, sha256 = excluded.sha256, added = excluded.added, kept = excluded.kept,
    withheld = excluded.withheld, rejected = excluded.rejected, imported_at = excluded.imported_at;
