-- +goose Up

-- The credentials of a workspace. Its hosts, fields and learned values are JSON.
CREATE TABLE connections (
    id            TEXT COLLATE "C"    PRIMARY KEY,
    workspace_id  TEXT COLLATE "C"    NOT NULL,
    name          TEXT COLLATE "C"    NOT NULL,
    integration   TEXT COLLATE "C"    NOT NULL, -- empty: custom, with a definition
    definition    TEXT COLLATE "C",             -- JSON
    auth          TEXT COLLATE "C"    NOT NULL,
    fields        TEXT COLLATE "C"    NOT NULL,
    learned       TEXT COLLATE "C"    NOT NULL,
    hosts         TEXT COLLATE "C"    NOT NULL,
    account       TEXT COLLATE "C"    NOT NULL,
    status        TEXT COLLATE "C"    NOT NULL,
    problem       TEXT COLLATE "C"    NOT NULL,
    credential    BYTEA    NOT NULL, -- sealed
    epoch         BIGINT NOT NULL, -- increases whenever the credential changes
    expires_at    BIGINT,
    renewing_node TEXT COLLATE "C",             -- the node that renews the token
    renewing_to   BIGINT,          -- until when it may
    last_used_at  BIGINT,
    created_at    BIGINT NOT NULL,
    created_by    TEXT COLLATE "C"    NOT NULL,
    updated_at    BIGINT NOT NULL,
    updated_by    TEXT COLLATE "C"    NOT NULL
);
CREATE UNIQUE INDEX connections_by_name ON connections (workspace_id, name);

ALTER TABLE workspaces ADD COLUMN connections BIGINT NOT NULL DEFAULT 0;

-- The connections that the current definitions of workflows name.
CREATE TABLE connection_users (
    workflow_id  TEXT COLLATE "C" NOT NULL,
    connection   TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workflow_id, connection)
);
CREATE INDEX connection_users_by_name ON connection_users (workspace_id, connection);

-- The registrations of this installation at services. A shared one serves all
-- workspaces.
CREATE TABLE oauth_apps (
    id           TEXT COLLATE "C"    PRIMARY KEY,
    workspace_id TEXT COLLATE "C"    NOT NULL,
    integration  TEXT COLLATE "C"    NOT NULL,
    auth         TEXT COLLATE "C"    NOT NULL,
    client_id    TEXT COLLATE "C"    NOT NULL,
    fields       TEXT COLLATE "C"    NOT NULL, -- JSON, without secrets
    secret       BYTEA    NOT NULL, -- sealed
    shared       BOOLEAN NOT NULL,
    created_at   BIGINT NOT NULL,
    created_by   TEXT COLLATE "C"    NOT NULL,
    updated_at   BIGINT NOT NULL,
    updated_by   TEXT COLLATE "C"    NOT NULL
);
CREATE UNIQUE INDEX oauth_apps_by_service ON oauth_apps (workspace_id, integration, auth);

-- Consents that are pending: a person was sent to the service and has not come back.
CREATE TABLE consents (
    state_hash   BYTEA    PRIMARY KEY, -- SHA-256 of the state parameter
    workspace_id TEXT COLLATE "C"    NOT NULL,
    user_id      TEXT COLLATE "C"    NOT NULL,
    pending      BYTEA    NOT NULL,    -- sealed
    expires_at   BIGINT NOT NULL
);

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
