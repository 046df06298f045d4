-- +goose Up

-- Times are microseconds since 1970 in UTC. Ids are text that sorts by time.

CREATE TABLE installation (
    id                 BIGINT           PRIMARY KEY CHECK (id = 1),
    first_workspace_id TEXT COLLATE "C" NOT NULL,
    key_check          BYTEA            NOT NULL, -- shows whether a master key is the one that seals this database
    created_at         BIGINT           NOT NULL,
    importing          TEXT COLLATE "C" -- the import that is filling the tables; NULL: none
);

CREATE TABLE workspaces (
    id                  TEXT COLLATE "C" PRIMARY KEY,
    name                TEXT COLLATE "C" NOT NULL,
    plan                TEXT COLLATE "C" NOT NULL,
    requests_per_minute BIGINT           NOT NULL,
    data_key            BYTEA            NOT NULL, -- wrapped by the master key
    created_at          BIGINT           NOT NULL,
    updated_at          BIGINT           NOT NULL,
    -- Counters for the limits of the plan, so that no rows are counted.
    workflows           BIGINT           NOT NULL DEFAULT 0,
    webhooks            BIGINT           NOT NULL DEFAULT 0,
    api_keys            BIGINT           NOT NULL DEFAULT 0,
    secrets             BIGINT           NOT NULL DEFAULT 0,
    variables           BIGINT           NOT NULL DEFAULT 0,
    variable_bytes      BIGINT           NOT NULL DEFAULT 0
);

CREATE TABLE api_keys (
    id           TEXT COLLATE "C" PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    scopes       TEXT COLLATE "C" NOT NULL,
    lookup       TEXT COLLATE "C" NOT NULL UNIQUE, -- the id inside the key's value
    hash         BYTEA            NOT NULL,        -- SHA-256 of the key's value
    created_at   BIGINT           NOT NULL,
    created_by   TEXT COLLATE "C" NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    revoked_at   BIGINT
);
CREATE INDEX api_keys_live ON api_keys (workspace_id, id) WHERE revoked_at IS NULL;

-- People: users, their memberships, sessions, invitations, and sign-in links that work
-- once.
CREATE TABLE users (
    id         TEXT COLLATE "C" PRIMARY KEY,
    email      TEXT COLLATE "C" NOT NULL UNIQUE, -- in lower case
    name       TEXT COLLATE "C" NOT NULL,
    password   TEXT COLLATE "C" NOT NULL,        -- argon2id, as a PHC string; '': none
    identity   TEXT COLLATE "C" UNIQUE,          -- issuer and subject at an identity provider
    seen_at    BIGINT,
    created_at BIGINT           NOT NULL
);

CREATE TABLE members (
    workspace_id TEXT COLLATE "C" NOT NULL,
    user_id      TEXT COLLATE "C" NOT NULL,
    role         TEXT COLLATE "C" NOT NULL,
    joined_at    BIGINT           NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
);
CREATE INDEX members_by_user ON members (user_id, joined_at);

CREATE TABLE sessions (
    id           TEXT COLLATE "C" PRIMARY KEY,
    hash         BYTEA            NOT NULL UNIQUE, -- SHA-256 of the token
    user_id      TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,        -- the workspace in use
    created_at   BIGINT           NOT NULL,
    seen_at      BIGINT           NOT NULL,
    expires_at   BIGINT           NOT NULL,
    address      TEXT COLLATE "C" NOT NULL,
    agent        TEXT COLLATE "C" NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id, id);

CREATE TABLE invitations (
    id           TEXT COLLATE "C" PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL,
    email        TEXT COLLATE "C" NOT NULL,
    role         TEXT COLLATE "C" NOT NULL,
    hash         BYTEA            NOT NULL UNIQUE, -- SHA-256 of the token in its link
    created_at   BIGINT           NOT NULL,
    created_by   TEXT COLLATE "C" NOT NULL,
    expires_at   BIGINT           NOT NULL
);
CREATE UNIQUE INDEX invitations_by_email ON invitations (workspace_id, email);

CREATE TABLE tickets (
    hash       BYTEA            PRIMARY KEY, -- SHA-256 of the token in the link
    kind       TEXT COLLATE "C" NOT NULL,    -- welcome or reset
    user_id    TEXT COLLATE "C" NOT NULL,    -- '': a link for the first user
    created_at BIGINT           NOT NULL,
    expires_at BIGINT           NOT NULL
);

CREATE TABLE audit (
    id           TEXT COLLATE "C" PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL,
    at           BIGINT           NOT NULL,
    actor_type   TEXT COLLATE "C" NOT NULL,
    actor_id     TEXT COLLATE "C" NOT NULL,
    action       TEXT COLLATE "C" NOT NULL,
    target_type  TEXT COLLATE "C" NOT NULL,
    target_id    TEXT COLLATE "C" NOT NULL,
    details      TEXT COLLATE "C" NOT NULL,
    request_id   TEXT COLLATE "C" NOT NULL
);
CREATE INDEX audit_by_workspace ON audit (workspace_id, id);
CREATE INDEX audit_by_target ON audit (workspace_id, target_id, id);
CREATE INDEX audit_by_action ON audit (workspace_id, action, id);

CREATE TABLE secrets (
    workspace_id TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    value        BYTEA            NOT NULL, -- sealed
    created_at   BIGINT           NOT NULL,
    created_by   TEXT COLLATE "C" NOT NULL,
    updated_at   BIGINT           NOT NULL,
    updated_by   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, name)
);

CREATE TABLE variables (
    workspace_id TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    value        TEXT COLLATE "C" NOT NULL, -- JSON
    created_at   BIGINT           NOT NULL,
    created_by   TEXT COLLATE "C" NOT NULL,
    updated_at   BIGINT           NOT NULL,
    updated_by   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, name)
);

CREATE TABLE workflows (
    id           TEXT COLLATE "C" PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    description  TEXT COLLATE "C",
    state        TEXT COLLATE "C" NOT NULL,
    version      BIGINT           NOT NULL,
    revision     BIGINT           NOT NULL, -- grows with every change
    created_at   BIGINT           NOT NULL,
    updated_at   BIGINT           NOT NULL,
    deleted_at   BIGINT, -- set: deleted, and its rows are being purged
    layout       TEXT COLLATE "C" NOT NULL,
    source       TEXT COLLATE "C", -- the YAML that a person wrote
    source_stale BOOLEAN          NOT NULL DEFAULT FALSE, -- the definition has changed since
    pinned       TEXT COLLATE "C" NOT NULL DEFAULT '{}' -- sample outputs of steps
);
CREATE INDEX workflows_live ON workflows (workspace_id, id) WHERE deleted_at IS NULL;
CREATE INDEX workflows_by_state ON workflows (workspace_id, state, id) WHERE deleted_at IS NULL;
CREATE INDEX workflows_deleted ON workflows (id) WHERE deleted_at IS NOT NULL;

-- The triggers in the current definitions of workflows.
CREATE TABLE triggers (
    workflow_id   TEXT COLLATE "C" NOT NULL,
    trigger_id    TEXT COLLATE "C" NOT NULL,
    workspace_id  TEXT COLLATE "C" NOT NULL,
    type          TEXT COLLATE "C" NOT NULL,
    version       BIGINT           NOT NULL, -- of the workflow
    active        BOOLEAN          NOT NULL, -- whether the workflow is
    next_at       BIGINT,                    -- when it is due; NULL: it does not depend on time, or is not active
    fired_at      BIGINT,
    run_id        TEXT COLLATE "C",          -- the run that it started last
    error_at      BIGINT,
    error_code    TEXT COLLATE "C",
    error_text    TEXT COLLATE "C",
    failures      BIGINT           NOT NULL DEFAULT 0, -- in a row
    idle_at       BIGINT,                    -- since 00015: not_fired_at, not_fired_code, not_fired_text
    idle_code     TEXT COLLATE "C",
    idle_text     TEXT COLLATE "C",
    token_hash    BYTEA,                     -- of the secret part of its URL
    token         BYTEA,                     -- sealed
    spec          TEXT COLLATE "C" NOT NULL, -- its part of the definition, as JSON
    state         BYTEA,                     -- what it remembers between polls, such as a cursor
    PRIMARY KEY (workflow_id, trigger_id)
);
CREATE INDEX triggers_due ON triggers (type, next_at) WHERE next_at IS NOT NULL;
CREATE UNIQUE INDEX triggers_by_token ON triggers (token_hash) WHERE token_hash IS NOT NULL;
CREATE INDEX triggers_of_events ON triggers (workspace_id, active) WHERE type = 'event';

-- Events for which an event trigger has yet to start a run. Since 00015: pending_triggers.
CREATE TABLE occasions (
    workflow_id  TEXT COLLATE "C" NOT NULL,
    trigger_id   TEXT COLLATE "C" NOT NULL,
    event_id     TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    next_at      BIGINT           NOT NULL,
    PRIMARY KEY (workflow_id, trigger_id, event_id)
);
CREATE INDEX occasions_due ON occasions (next_at, event_id);
CREATE INDEX occasions_by_event ON occasions (event_id);

-- Deduplication keys of calls that started a run.
CREATE TABLE trigger_keys (
    workflow_id TEXT COLLATE "C" NOT NULL,
    trigger_id  TEXT COLLATE "C" NOT NULL,
    hash        BYTEA            NOT NULL,
    run_id      TEXT COLLATE "C" NOT NULL,
    expires_at  BIGINT           NOT NULL,
    PRIMARY KEY (workflow_id, trigger_id, hash)
);
CREATE INDEX trigger_keys_expired ON trigger_keys (expires_at);

CREATE TABLE workflow_versions (
    workflow_id TEXT COLLATE "C" NOT NULL,
    version     BIGINT           NOT NULL,
    created_at  BIGINT           NOT NULL,
    created_by  TEXT COLLATE "C" NOT NULL,
    definition  TEXT COLLATE "C" NOT NULL,
    source      TEXT COLLATE "C", -- the YAML of the definition
    PRIMARY KEY (workflow_id, version)
);

CREATE TABLE runs (
    id               TEXT COLLATE "C" PRIMARY KEY,
    workspace_id     TEXT COLLATE "C" NOT NULL,
    workflow_id      TEXT COLLATE "C" NOT NULL,
    workflow_version BIGINT           NOT NULL,
    status           TEXT COLLATE "C" NOT NULL,
    started_at       BIGINT           NOT NULL,
    finished_at      BIGINT,
    trigger_type     TEXT COLLATE "C" NOT NULL,
    trigger_id       TEXT COLLATE "C",
    error_code       TEXT COLLATE "C",
    error_text       TEXT COLLATE "C",
    error_step       TEXT COLLATE "C",
    retry_of         TEXT COLLATE "C",
    parent_run       TEXT COLLATE "C", -- the run whose step started this one
    parent_step      TEXT COLLATE "C",
    parent_waits     BOOLEAN,                             -- whether that step waits for this run to end
    depth            BIGINT           NOT NULL DEFAULT 0, -- the number of runs above it: its parent, the parent of that and so on
    share_key        TEXT COLLATE "C",                    -- since 00015: concurrency_key
    test             BOOLEAN          NOT NULL DEFAULT false, -- a person started it to test a trigger
    draft            BOOLEAN          NOT NULL DEFAULT false, -- its definition is in run_drafts
    payload          TEXT COLLATE "C" NOT NULL,
    headers          TEXT COLLATE "C",                        -- of the request to a webhook trigger
    query            TEXT COLLATE "C"
);
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
    run_id       TEXT COLLATE "C" PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL,
    workflow_id  TEXT COLLATE "C" NOT NULL,
    epoch        BIGINT           NOT NULL,
    node         TEXT COLLATE "C",                    -- the node that executes the run; NULL: none
    wake_at      BIGINT,                              -- when it is due; with a node: an answer has arrived for it
    executing    TEXT COLLATE "C",                    -- the paths of the steps that are executing
    ran          BIGINT           NOT NULL DEFAULT 0, -- since 00015: execution_time
    logged       BIGINT           NOT NULL DEFAULT 0, -- since 00015: log_bytes
    crashes      BIGINT           NOT NULL DEFAULT 0, -- how many processes in a row crashed while they executed the suspects
    blamed       TEXT COLLATE "C",                    -- since 00015: suspects
    share_key    TEXT COLLATE "C",
    share_limit  BIGINT,
    turn         BOOLEAN          NOT NULL DEFAULT true,  -- since 00015: admitted
    slot         BOOLEAN          NOT NULL DEFAULT false, -- it counts against the limit of runs in flight of its workspace
    parked       BOOLEAN          NOT NULL DEFAULT false, -- since 00015: throttled
    adrift       BOOLEAN          NOT NULL DEFAULT false  -- since 00015: orphaned
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX run_queue_due ON run_queue (wake_at) WHERE node IS NULL;
CREATE INDEX run_queue_parked ON run_queue (workspace_id, wake_at, run_id) WHERE parked;
CREATE INDEX run_queue_adrift ON run_queue (run_id) WHERE adrift;
CREATE INDEX run_queue_by_node ON run_queue (node, run_id) WHERE node IS NOT NULL;
CREATE INDEX run_queue_by_share ON run_queue (workflow_id, share_key, turn, run_id) WHERE share_key IS NOT NULL;
-- The conditions hold for every row. They keep the planner from choosing these indexes for
-- statements that do not ask for them (runqueue.UseIndex).
CREATE INDEX run_queue_by_workflow ON run_queue (workflow_id, run_id) WHERE workflow_id <> '';
CREATE INDEX run_queue_by_workspace ON run_queue (workspace_id, run_id) WHERE workspace_id <> '';

CREATE TABLE steps (
    run_id      TEXT COLLATE "C" NOT NULL,
    path        TEXT COLLATE "C" NOT NULL,
    seq         BIGINT           NOT NULL,
    name        TEXT COLLATE "C" NOT NULL,
    type        TEXT COLLATE "C" NOT NULL,
    status      TEXT COLLATE "C" NOT NULL,
    attempt     BIGINT           NOT NULL,
    started_at  BIGINT           NOT NULL,
    attempt_at  BIGINT           NOT NULL, -- when the current attempt began
    finished_at BIGINT,
    wake_at     BIGINT,
    deadline    BIGINT,           -- when the wait ends, if the step wakes before that
    awaits      TEXT COLLATE "C", -- what ends the wait apart from the time: an answer, a run or a connection
    reason      TEXT COLLATE "C",
    error_code  TEXT COLLATE "C",
    error_text  TEXT COLLATE "C",
    error_step  TEXT COLLATE "C",                    -- the step that failed, for a loop one inside it
    rev         BIGINT           NOT NULL DEFAULT 0, -- the commit of the run that wrote the row last
    input       TEXT COLLATE "C",
    output      TEXT COLLATE "C",
    answer      TEXT COLLATE "C", -- the answer that arrived while it was open
    PRIMARY KEY (run_id, path)
);
CREATE INDEX steps_awaiting ON steps (run_id, path) WHERE awaits = 'answer' AND status = 'waiting';

-- The definitions that runs of drafts execute, which were never saved, with the pinned
-- outputs of their steps.
CREATE TABLE run_drafts (
    run_id     TEXT COLLATE "C" PRIMARY KEY,
    definition TEXT COLLATE "C" NOT NULL,
    pinned     TEXT COLLATE "C" NOT NULL
);

-- Answers that arrived through a link before their steps waited for them.
CREATE TABLE early_answers (
    run_id TEXT COLLATE "C" NOT NULL,
    path   TEXT COLLATE "C" NOT NULL,
    value  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run_id, path)
);

-- The log lines of steps, in the order of the run's commits.
CREATE TABLE step_logs (
    run_id  TEXT COLLATE "C" NOT NULL,
    rev     BIGINT           NOT NULL,
    line    BIGINT           NOT NULL,
    path    TEXT COLLATE "C" NOT NULL,
    attempt BIGINT           NOT NULL,
    at      BIGINT           NOT NULL,
    level   TEXT COLLATE "C" NOT NULL,
    message TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run_id, rev, line)
);

-- Attempts that failed and were retried. The last attempt is in steps.
CREATE TABLE step_attempts (
    run_id      TEXT COLLATE "C" NOT NULL,
    path        TEXT COLLATE "C" NOT NULL,
    attempt     BIGINT           NOT NULL,
    started_at  BIGINT           NOT NULL,
    finished_at BIGINT           NOT NULL,
    error_code  TEXT COLLATE "C" NOT NULL,
    error_text  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run_id, path, attempt)
);

-- Purged runs whose rows in other tables are still being deleted, in batches. Since 00015:
-- purged_runs.
CREATE TABLE run_remains (
    run_id TEXT COLLATE "C" PRIMARY KEY
);

CREATE TABLE webhooks (
    id              TEXT COLLATE "C" PRIMARY KEY,
    workspace_id    TEXT COLLATE "C" NOT NULL,
    url             TEXT COLLATE "C" NOT NULL,
    events          TEXT COLLATE "C" NOT NULL,
    workflow_id     TEXT COLLATE "C" NOT NULL, -- '' for every workflow
    enabled         BOOLEAN          NOT NULL,
    disabled_reason TEXT COLLATE "C" NOT NULL,
    secret          BYTEA            NOT NULL, -- sealed
    secret_hint     TEXT COLLATE "C" NOT NULL,
    old_secret      BYTEA,                               -- sealed; the previous one, with which deliveries are signed too
    old_until       BIGINT,                              -- until when they are
    failures        BIGINT           NOT NULL DEFAULT 0, -- in a row
    failing_since   BIGINT,
    created_at      BIGINT           NOT NULL,
    updated_at      BIGINT           NOT NULL,
    deleted_at      BIGINT -- set: deleted, and kept until its pending deliveries have ended
);
CREATE INDEX webhooks_live ON webhooks (workspace_id, id) WHERE deleted_at IS NULL;

-- The latest requests to webhook triggers, for people who build workflows.
CREATE TABLE hook_requests (
    workflow_id  TEXT COLLATE "C" NOT NULL,
    trigger_id   TEXT COLLATE "C" NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    at           BIGINT           NOT NULL,
    method       TEXT COLLATE "C" NOT NULL,
    size         BIGINT           NOT NULL, -- of the body
    outcome      TEXT COLLATE "C" NOT NULL,
    run_id       TEXT COLLATE "C",
    headers      TEXT COLLATE "C" NOT NULL,
    query        TEXT COLLATE "C" NOT NULL,
    payload      TEXT COLLATE "C", -- NULL: it was too large
    PRIMARY KEY (workflow_id, trigger_id, id)
);
CREATE INDEX hook_requests_old ON hook_requests (at);

CREATE TABLE events (
    seq          BIGINT           GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    id           TEXT COLLATE "C" NOT NULL UNIQUE,
    workspace_id TEXT COLLATE "C" NOT NULL,
    type         TEXT COLLATE "C" NOT NULL,
    workflow_id  TEXT COLLATE "C" NOT NULL,
    run_id       TEXT COLLATE "C",
    at           BIGINT           NOT NULL,
    depth        BIGINT           NOT NULL DEFAULT 0,     -- that of the run
    sample       BOOLEAN          NOT NULL DEFAULT false, -- true: a test event
    body         BYTEA            NOT NULL                -- immutable, exactly as it is sent
);
CREATE INDEX events_by_workspace ON events (workspace_id, seq);
CREATE INDEX events_by_run ON events (run_id, workspace_id) WHERE run_id IS NOT NULL;

CREATE TABLE deliveries (
    seq          BIGINT           GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    id           TEXT COLLATE "C" NOT NULL UNIQUE,
    workspace_id TEXT COLLATE "C" NOT NULL,
    webhook_id   TEXT COLLATE "C" NOT NULL,
    event_id     TEXT COLLATE "C" NOT NULL,
    run_id       TEXT COLLATE "C",
    status       TEXT COLLATE "C" NOT NULL,
    attempts     BIGINT           NOT NULL,
    next_at      BIGINT, -- NULL: it has ended
    created_at   BIGINT           NOT NULL,
    finished_at  BIGINT
);
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_by_status ON deliveries (webhook_id, status, id);
CREATE INDEX deliveries_by_event ON deliveries (event_id, webhook_id, id);
CREATE INDEX deliveries_due ON deliveries (next_at, seq, webhook_id) WHERE next_at IS NOT NULL;

CREATE TABLE delivery_attempts (
    delivery_id TEXT COLLATE "C" NOT NULL,
    attempt     BIGINT           NOT NULL,
    at          BIGINT           NOT NULL,
    duration    BIGINT           NOT NULL,
    status      BIGINT           NOT NULL, -- of the response; 0: there was none
    error       TEXT COLLATE "C",
    answer      TEXT COLLATE "C",
    PRIMARY KEY (delivery_id, attempt)
);

CREATE TABLE idempotency (
    workspace_id TEXT COLLATE "C" NOT NULL,
    route        TEXT COLLATE "C" NOT NULL,
    key_hash     TEXT COLLATE "C" NOT NULL,
    fingerprint  BYTEA            NOT NULL,
    expires_at   BIGINT           NOT NULL,
    answer       BYTEA            NOT NULL, -- sealed
    PRIMARY KEY (workspace_id, route, key_hash)
);
CREATE INDEX idempotency_expired ON idempotency (expires_at);

CREATE TABLE usage (
    workspace_id   TEXT COLLATE "C" NOT NULL,
    date           TEXT COLLATE "C" NOT NULL,
    requests       BIGINT           NOT NULL,
    runs_started   BIGINT           NOT NULL,
    runs_succeeded BIGINT           NOT NULL,
    runs_failed    BIGINT           NOT NULL,
    runs_cancelled BIGINT           NOT NULL,
    PRIMARY KEY (workspace_id, date)
);

-- The tokens that nodes have taken from the bucket of a workspace for a minute.
CREATE TABLE rate_windows (
    window_start BIGINT           NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    taken        BIGINT           NOT NULL,
    granted      BIGINT           NOT NULL, -- how many the last request of a node got
    PRIMARY KEY (window_start, workspace_id)
);

-- The nodes that share this database, and what they have divided among themselves.

CREATE TABLE nodes (
    id         TEXT COLLATE "C" PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL,
    version    TEXT COLLATE "C" NOT NULL,
    role       TEXT COLLATE "C" NOT NULL,
    url        TEXT COLLATE "C" NOT NULL DEFAULT '', -- where people and services reach it; empty: nowhere
    listens    TEXT COLLATE "C" NOT NULL DEFAULT '', -- the addresses that it listens on, separated by spaces: no step can reach them
    capacity   BIGINT           NOT NULL, -- the number of runs that it can execute at a time
    started_at BIGINT           NOT NULL,
    seen_at    BIGINT           NOT NULL, -- by the clock of the database
    expires_at BIGINT           NOT NULL,
    dead       BOOLEAN          NOT NULL DEFAULT false -- its lease expired, and other nodes take over its runs
) WITH (fillfactor = 50);

-- How many runs of a workspace have a slot and how many are throttled. 00015 renames
-- columns.
CREATE TABLE workspace_load (
    workspace_id TEXT COLLATE "C" PRIMARY KEY,
    running      BIGINT           NOT NULL,
    parked       BIGINT           NOT NULL,
    given        BOOLEAN          NOT NULL DEFAULT true, -- since 00015: slot_granted
    audience     BIGINT           NOT NULL DEFAULT (random() * 9e18)::bigint -- since 00015: subscribers_version
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

-- The node that sends the deliveries of a webhook. Since 00015: webhook_owners.
CREATE TABLE couriers (
    webhook_id TEXT COLLATE "C" PRIMARY KEY,
    node       TEXT COLLATE "C" NOT NULL
);
CREATE INDEX couriers_by_node ON couriers (node);

-- The node that leads: it does what is done once for all nodes. Since 00015: leaderships.
CREATE TABLE terms (
    name   TEXT COLLATE "C" PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL,
    until  BIGINT           NOT NULL -- by the clock of the database
);

-- PostgreSQL empties an unlogged table when it recovers from a crash. As long as the mark
-- is there, the outcome of every earlier transaction can be looked up (see write.go).
CREATE UNLOGGED TABLE recovery (
    id   BIGINT           PRIMARY KEY CHECK (id = 1),
    mark TEXT COLLATE "C" NOT NULL
);

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
