-- +goose Up

-- Times are microseconds since 1970 in UTC. Ids are text that sorts by time.

CREATE TABLE installation (
    id                 INTEGER PRIMARY KEY CHECK (id = 1),
    first_workspace_id TEXT    NOT NULL,
    key_check          BLOB    NOT NULL, -- shows whether a master key is the one that seals this database
    created_at         INTEGER NOT NULL,
    importing          TEXT              -- the import that is filling the tables; NULL: none
);

CREATE TABLE workspaces (
    id                  TEXT PRIMARY KEY,
    name                TEXT    NOT NULL,
    plan                TEXT    NOT NULL,
    requests_per_minute INTEGER NOT NULL,
    data_key            BLOB    NOT NULL, -- wrapped by the master key
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    -- Counters for the limits of the plan, so that no rows are counted.
    workflows           INTEGER NOT NULL DEFAULT 0,
    webhooks            INTEGER NOT NULL DEFAULT 0,
    api_keys            INTEGER NOT NULL DEFAULT 0,
    secrets             INTEGER NOT NULL DEFAULT 0,
    variables           INTEGER NOT NULL DEFAULT 0,
    variable_bytes      INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    scopes       TEXT    NOT NULL,
    lookup       TEXT    NOT NULL UNIQUE, -- the id inside the key's value
    hash         BLOB    NOT NULL,        -- SHA-256 of the key's value
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) WITHOUT ROWID;
CREATE INDEX api_keys_live ON api_keys (workspace_id, id) WHERE revoked_at IS NULL;

-- People: users, their memberships, sessions, invitations, and sign-in links that work
-- once.
CREATE TABLE users (
    id         TEXT PRIMARY KEY,
    email      TEXT    NOT NULL UNIQUE, -- in lower case
    name       TEXT    NOT NULL,
    password   TEXT    NOT NULL,        -- argon2id, as a PHC string; '': none
    identity   TEXT    UNIQUE,          -- issuer and subject at an identity provider
    seen_at    INTEGER,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE members (
    workspace_id TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    role         TEXT    NOT NULL,
    joined_at    INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
) WITHOUT ROWID;
CREATE INDEX members_by_user ON members (user_id, joined_at);

CREATE TABLE sessions (
    id           TEXT PRIMARY KEY,
    hash         BLOB    NOT NULL UNIQUE, -- SHA-256 of the token
    user_id      TEXT    NOT NULL,
    workspace_id TEXT    NOT NULL,        -- the workspace in use
    created_at   INTEGER NOT NULL,
    seen_at      INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    address      TEXT    NOT NULL,
    agent        TEXT    NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_by_user ON sessions (user_id, id);

CREATE TABLE invitations (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    email        TEXT    NOT NULL,
    role         TEXT    NOT NULL,
    hash         BLOB    NOT NULL UNIQUE, -- SHA-256 of the token in its link
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    expires_at   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX invitations_by_email ON invitations (workspace_id, email);

CREATE TABLE tickets (
    hash       BLOB    PRIMARY KEY, -- SHA-256 of the token in the link
    kind       TEXT    NOT NULL,    -- welcome or reset
    user_id    TEXT    NOT NULL,    -- '': a link for the first user
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE audit (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    actor_type   TEXT    NOT NULL,
    actor_id     TEXT    NOT NULL,
    action       TEXT    NOT NULL,
    target_type  TEXT    NOT NULL,
    target_id    TEXT    NOT NULL,
    details      TEXT    NOT NULL,
    request_id   TEXT    NOT NULL
) WITHOUT ROWID;
CREATE INDEX audit_by_workspace ON audit (workspace_id, id);
CREATE INDEX audit_by_target ON audit (workspace_id, target_id, id);
CREATE INDEX audit_by_action ON audit (workspace_id, action, id);

CREATE TABLE secrets (
    workspace_id TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    value        BLOB    NOT NULL, -- sealed
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    updated_at   INTEGER NOT NULL,
    updated_by   TEXT    NOT NULL,
    PRIMARY KEY (workspace_id, name)
) WITHOUT ROWID;

CREATE TABLE variables (
    workspace_id TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    value        TEXT    NOT NULL, -- JSON
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    updated_at   INTEGER NOT NULL,
    updated_by   TEXT    NOT NULL,
    PRIMARY KEY (workspace_id, name)
) WITHOUT ROWID;

CREATE TABLE workflows (
    id           TEXT PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    description  TEXT,
    state        TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    revision     INTEGER NOT NULL, -- grows with every change
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    deleted_at   INTEGER,          -- set: deleted, and its rows are being purged
    layout       TEXT    NOT NULL,
    source       TEXT,             -- the YAML that a person wrote
    source_stale INTEGER NOT NULL DEFAULT 0, -- 1: the definition has changed since
    pinned       TEXT    NOT NULL DEFAULT '{}' -- sample outputs of steps
) WITHOUT ROWID;
-- These two indexes cover lists and searches, because SQLite reads the whole source of a
-- workflow to get at one of its columns.
CREATE INDEX workflows_live ON workflows (workspace_id, id, name, state, created_at, updated_at, deleted_at, description) WHERE deleted_at IS NULL;
CREATE INDEX workflows_by_state ON workflows (workspace_id, state, id, name, created_at, updated_at, deleted_at, description) WHERE deleted_at IS NULL;
CREATE INDEX workflows_deleted ON workflows (id) WHERE deleted_at IS NOT NULL;

CREATE TABLE workflow_versions (
    workflow_id TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    created_by  TEXT    NOT NULL,
    definition  TEXT    NOT NULL,
    source      TEXT,             -- the YAML of the definition
    PRIMARY KEY (workflow_id, version)
) WITHOUT ROWID;

CREATE TABLE runs (
    id               TEXT PRIMARY KEY,
    workspace_id     TEXT    NOT NULL,
    workflow_id      TEXT    NOT NULL,
    workflow_version INTEGER NOT NULL,
    status           TEXT    NOT NULL,
    started_at       INTEGER NOT NULL,
    finished_at      INTEGER,
    trigger_type     TEXT    NOT NULL,
    trigger_id       TEXT,
    error_code       TEXT,
    error_text       TEXT,
    error_step       TEXT,
    retry_of         TEXT,
    parent_run       TEXT,             -- the run whose step started this one
    parent_step      TEXT,
    parent_waits     INTEGER,          -- whether that step waits for this run to end
    depth            INTEGER NOT NULL DEFAULT 0, -- the number of runs above it: its parent, the parent of that and so on
    share_key        TEXT,             -- since 00015: concurrency_key
    test             INTEGER NOT NULL DEFAULT 0, -- 1: a person started it to test a trigger
    draft            INTEGER NOT NULL DEFAULT 0, -- 1: its definition is in run_drafts
    payload          TEXT    NOT NULL,
    headers          TEXT,             -- of the request to a webhook trigger
    query            TEXT
) WITHOUT ROWID;
CREATE INDEX runs_by_workflow ON runs (workflow_id, id);
CREATE INDEX runs_by_parent ON runs (parent_run) WHERE parent_run IS NOT NULL;
CREATE INDEX runs_by_workspace ON runs (workspace_id, id);
-- Runs that are not finished are found through run_queue, so that a run enters this index
-- only once, when it ends.
CREATE INDEX runs_finished ON runs (workflow_id, status, id) WHERE status <> 'running';
-- The few that people look for among many that succeeded.
CREATE INDEX runs_unsuccessful ON runs (workspace_id, status, id) WHERE status IN ('failed', 'cancelled');

-- One narrow row for each unfinished run. Rows here change with every commit of a run, so
-- what is large or seldom changes is in runs. 00015 renames columns.
CREATE TABLE run_queue (
    run_id       TEXT PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    workflow_id  TEXT    NOT NULL,
    epoch        INTEGER NOT NULL,
    node         TEXT,    -- the node that executes the run; NULL: none
    wake_at      INTEGER, -- when it is due; with a node: an answer has arrived for it
    executing    TEXT,    -- the paths of the steps that are executing
    ran          INTEGER NOT NULL DEFAULT 0, -- since 00015: execution_time
    logged       INTEGER NOT NULL DEFAULT 0, -- since 00015: log_bytes
    crashes      INTEGER NOT NULL DEFAULT 0, -- how many processes in a row crashed while they executed the suspects
    blamed       TEXT,                       -- since 00015: suspects
    share_key    TEXT,
    share_limit  INTEGER,
    turn         INTEGER NOT NULL DEFAULT 1  -- since 00015: admitted
) WITHOUT ROWID;
CREATE INDEX run_queue_due ON run_queue (wake_at) WHERE node IS NULL;
CREATE INDEX run_queue_by_share ON run_queue (workflow_id, share_key, turn, run_id) WHERE share_key IS NOT NULL;
CREATE INDEX run_queue_by_workflow ON run_queue (workflow_id, run_id);
CREATE INDEX run_queue_by_workspace ON run_queue (workspace_id, run_id);

CREATE TABLE steps (
    run_id      TEXT    NOT NULL,
    path        TEXT    NOT NULL,
    seq         INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    type        TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    attempt     INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    attempt_at  INTEGER NOT NULL, -- when the current attempt began
    finished_at INTEGER,
    wake_at     INTEGER,
    deadline    INTEGER,          -- when the wait ends, if the step wakes before that
    awaits      TEXT,             -- what ends the wait apart from the time: an answer, a run or a connection
    reason      TEXT,
    error_code  TEXT,
    error_text  TEXT,
    error_step  TEXT,             -- the step that failed, for a loop one inside it
    rev         INTEGER NOT NULL DEFAULT 0, -- the commit of the run that wrote the row last
    input       TEXT,
    output      TEXT,
    answer      TEXT,             -- the answer that arrived while it was open
    PRIMARY KEY (run_id, path)
) WITHOUT ROWID;
CREATE INDEX steps_awaiting ON steps (run_id, path) WHERE awaits = 'answer' AND status = 'waiting';

-- The definitions that runs of drafts execute, which were never saved, with the pinned
-- outputs of their steps.
CREATE TABLE run_drafts (
    run_id     TEXT PRIMARY KEY,
    definition TEXT NOT NULL,
    pinned     TEXT NOT NULL
) WITHOUT ROWID;

-- Answers that arrived through a link before their steps waited for them.
CREATE TABLE early_answers (
    run_id TEXT NOT NULL,
    path   TEXT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (run_id, path)
) WITHOUT ROWID;

-- The log lines of steps, in the order of the run's commits.
CREATE TABLE step_logs (
    run_id  TEXT    NOT NULL,
    rev     INTEGER NOT NULL,
    line    INTEGER NOT NULL,
    path    TEXT    NOT NULL,
    attempt INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    level   TEXT    NOT NULL,
    message TEXT    NOT NULL,
    PRIMARY KEY (run_id, rev, line)
) WITHOUT ROWID;

-- Attempts that failed and were retried. The last attempt is in steps.
CREATE TABLE step_attempts (
    run_id      TEXT    NOT NULL,
    path        TEXT    NOT NULL,
    attempt     INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    error_code  TEXT    NOT NULL,
    error_text  TEXT    NOT NULL,
    PRIMARY KEY (run_id, path, attempt)
) WITHOUT ROWID;

-- Purged runs whose rows in other tables are still being deleted, in batches. Since 00015:
-- purged_runs.
CREATE TABLE run_remains (
    run_id TEXT PRIMARY KEY
) WITHOUT ROWID;

CREATE TABLE webhooks (
    id              TEXT PRIMARY KEY,
    workspace_id    TEXT    NOT NULL,
    url             TEXT    NOT NULL,
    events          TEXT    NOT NULL,
    workflow_id     TEXT    NOT NULL, -- '' for every workflow
    enabled         INTEGER NOT NULL,
    disabled_reason TEXT    NOT NULL,
    secret          BLOB    NOT NULL, -- sealed
    secret_hint     TEXT    NOT NULL,
    old_secret      BLOB,             -- sealed; the previous one, with which deliveries are signed too
    old_until       INTEGER,          -- until when they are
    failures        INTEGER NOT NULL DEFAULT 0, -- in a row
    failing_since   INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    deleted_at      INTEGER           -- set: deleted, and kept until its pending deliveries have ended
) WITHOUT ROWID;
CREATE INDEX webhooks_live ON webhooks (workspace_id, id) WHERE deleted_at IS NULL;

-- The triggers in the current definitions of workflows.
CREATE TABLE triggers (
    workflow_id   TEXT    NOT NULL,
    trigger_id    TEXT    NOT NULL,
    workspace_id  TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    version       INTEGER NOT NULL, -- of the workflow
    active        INTEGER NOT NULL, -- whether the workflow is
    next_at       INTEGER,          -- when it is due; NULL: it does not depend on time, or is not active
    fired_at      INTEGER,
    run_id        TEXT,             -- the run that it started last
    error_at      INTEGER,
    error_code    TEXT,
    error_text    TEXT,
    failures      INTEGER NOT NULL DEFAULT 0, -- in a row
    idle_at       INTEGER,          -- since 00015: not_fired_at, not_fired_code, not_fired_text
    idle_code     TEXT,
    idle_text     TEXT,
    token_hash    BLOB,             -- of the secret part of its URL
    token         BLOB,             -- sealed
    spec          TEXT    NOT NULL, -- its part of the definition, as JSON
    state         BLOB,             -- what it remembers between polls, such as a cursor
    PRIMARY KEY (workflow_id, trigger_id)
) WITHOUT ROWID;
CREATE INDEX triggers_due ON triggers (type, next_at) WHERE next_at IS NOT NULL;
CREATE UNIQUE INDEX triggers_by_token ON triggers (token_hash) WHERE token_hash IS NOT NULL;
CREATE INDEX triggers_of_events ON triggers (workspace_id, active) WHERE type = 'event';

-- Events for which an event trigger has yet to start a run. Since 00015: pending_triggers.
CREATE TABLE occasions (
    workflow_id  TEXT    NOT NULL,
    trigger_id   TEXT    NOT NULL,
    event_id     TEXT    NOT NULL,
    workspace_id TEXT    NOT NULL,
    next_at      INTEGER NOT NULL,
    PRIMARY KEY (workflow_id, trigger_id, event_id)
) WITHOUT ROWID;
CREATE INDEX occasions_due ON occasions (next_at, event_id);
CREATE INDEX occasions_by_event ON occasions (event_id);

-- Deduplication keys of calls that started a run.
CREATE TABLE trigger_keys (
    workflow_id TEXT    NOT NULL,
    trigger_id  TEXT    NOT NULL,
    hash        BLOB    NOT NULL,
    run_id      TEXT    NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (workflow_id, trigger_id, hash)
) WITHOUT ROWID;
CREATE INDEX trigger_keys_expired ON trigger_keys (expires_at);

-- The latest requests to webhook triggers, for people who build workflows.
CREATE TABLE hook_requests (
    workflow_id  TEXT    NOT NULL,
    trigger_id   TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    workspace_id TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    method       TEXT    NOT NULL,
    size         INTEGER NOT NULL, -- of the body
    outcome      TEXT    NOT NULL,
    run_id       TEXT,
    headers      TEXT    NOT NULL,
    query        TEXT    NOT NULL,
    payload      TEXT,             -- NULL: it was too large
    PRIMARY KEY (workflow_id, trigger_id, id)
) WITHOUT ROWID;
CREATE INDEX hook_requests_old ON hook_requests (at);

CREATE TABLE events (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    workspace_id TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    workflow_id  TEXT    NOT NULL,
    run_id       TEXT,
    at           INTEGER NOT NULL,
    depth        INTEGER NOT NULL DEFAULT 0, -- that of the run
    sample       INTEGER NOT NULL DEFAULT 0, -- 1: a test event
    body         BLOB    NOT NULL -- immutable, exactly as it is sent
);
CREATE INDEX events_by_workspace ON events (workspace_id, seq);
CREATE INDEX events_by_run ON events (run_id, workspace_id) WHERE run_id IS NOT NULL;

CREATE TABLE deliveries (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    workspace_id TEXT    NOT NULL,
    webhook_id   TEXT    NOT NULL,
    event_id     TEXT    NOT NULL,
    run_id       TEXT,
    status       TEXT    NOT NULL,
    attempts     INTEGER NOT NULL,
    next_at      INTEGER, -- NULL: it has ended
    created_at   INTEGER NOT NULL,
    finished_at  INTEGER
);
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_by_status ON deliveries (webhook_id, status, id);
CREATE INDEX deliveries_by_event ON deliveries (event_id, webhook_id, id);
CREATE INDEX deliveries_due ON deliveries (next_at, seq, webhook_id) WHERE next_at IS NOT NULL;

CREATE TABLE delivery_attempts (
    delivery_id TEXT    NOT NULL,
    attempt     INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    duration    INTEGER NOT NULL,
    status      INTEGER NOT NULL, -- of the response; 0: there was none
    error       TEXT,
    answer      TEXT,
    PRIMARY KEY (delivery_id, attempt)
) WITHOUT ROWID;

CREATE TABLE idempotency (
    workspace_id TEXT    NOT NULL,
    route        TEXT    NOT NULL,
    key_hash     TEXT    NOT NULL,
    fingerprint  BLOB    NOT NULL,
    expires_at   INTEGER NOT NULL,
    answer       BLOB    NOT NULL, -- sealed
    PRIMARY KEY (workspace_id, route, key_hash)
) WITHOUT ROWID;
CREATE INDEX idempotency_expired ON idempotency (expires_at);

CREATE TABLE usage (
    workspace_id   TEXT    NOT NULL,
    date           TEXT    NOT NULL,
    requests       INTEGER NOT NULL,
    runs_started   INTEGER NOT NULL,
    runs_succeeded INTEGER NOT NULL,
    runs_failed    INTEGER NOT NULL,
    runs_cancelled INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, date)
) WITHOUT ROWID;

-- The tokens that nodes have taken from the bucket of a workspace for a minute. Empty on
-- SQLite: a single process counts in its memory.
CREATE TABLE rate_windows (
    window_start INTEGER NOT NULL,
    workspace_id TEXT    NOT NULL,
    taken        INTEGER NOT NULL,
    granted      INTEGER NOT NULL, -- how many the last request of a node got
    PRIMARY KEY (window_start, workspace_id)
) WITHOUT ROWID;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
