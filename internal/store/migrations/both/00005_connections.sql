-- +goose Up

-- The credentials of a workspace. Its hosts, fields and learned values are JSON.
CREATE TABLE connections (
    id            TEXT    PRIMARY KEY,
    workspace_id  TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    integration   TEXT    NOT NULL, -- empty: custom, with a definition
    definition    TEXT,             -- JSON
    auth          TEXT    NOT NULL,
    fields        TEXT    NOT NULL,
    learned       TEXT    NOT NULL,
    hosts         TEXT    NOT NULL,
    account       TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    problem       TEXT    NOT NULL,
    credential    BLOB    NOT NULL, -- sealed
    epoch         INTEGER NOT NULL, -- increases whenever the credential changes
    expires_at    INTEGER,
    renewing_node TEXT,             -- the node that renews the token
    renewing_to   INTEGER,          -- until when it may
    last_used_at  INTEGER,
    created_at    INTEGER NOT NULL,
    created_by    TEXT    NOT NULL,
    updated_at    INTEGER NOT NULL,
    updated_by    TEXT    NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX connections_by_name ON connections (workspace_id, name);

ALTER TABLE workspaces ADD COLUMN connections INTEGER NOT NULL DEFAULT 0;

-- The connections that the current definitions of workflows name.
CREATE TABLE connection_users (
    workflow_id  TEXT NOT NULL,
    connection   TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    PRIMARY KEY (workflow_id, connection)
) WITHOUT ROWID;
CREATE INDEX connection_users_by_name ON connection_users (workspace_id, connection);

-- The registrations of this installation at services. A shared one serves all
-- workspaces.
CREATE TABLE oauth_apps (
    id           TEXT    PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    integration  TEXT    NOT NULL,
    auth         TEXT    NOT NULL,
    client_id    TEXT    NOT NULL,
    fields       TEXT    NOT NULL, -- JSON, without secrets
    secret       BLOB    NOT NULL, -- sealed
    shared       BOOLEAN NOT NULL,
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    updated_at   INTEGER NOT NULL,
    updated_by   TEXT    NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX oauth_apps_by_service ON oauth_apps (workspace_id, integration, auth);

-- Consents that are pending: a person was sent to the service and has not come back.
CREATE TABLE consents (
    state_hash   BLOB    PRIMARY KEY, -- SHA-256 of the state parameter
    workspace_id TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    pending      BLOB    NOT NULL,    -- sealed
    expires_at   INTEGER NOT NULL
) WITHOUT ROWID;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
