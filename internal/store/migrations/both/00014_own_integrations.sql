-- +goose Up

-- The manifests of the integrations that workspaces have described themselves.
CREATE TABLE own_integrations (
    workspace_id TEXT    NOT NULL,
    id           TEXT    NOT NULL, -- such as x_acme
    manifest     TEXT    NOT NULL,
    digest       TEXT    NOT NULL, -- of the manifest
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    updated_at   INTEGER NOT NULL,
    updated_by   TEXT    NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
