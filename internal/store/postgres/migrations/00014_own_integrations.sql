-- +goose Up

-- The manifests of the integrations that workspaces have described themselves.
CREATE TABLE own_integrations (
    workspace_id TEXT COLLATE "C" NOT NULL,
    id           TEXT COLLATE "C" NOT NULL, -- such as x_acme
    manifest     TEXT COLLATE "C" NOT NULL,
    digest       TEXT COLLATE "C" NOT NULL, -- of the manifest
    created_at   BIGINT           NOT NULL,
    created_by   TEXT COLLATE "C" NOT NULL,
    updated_at   BIGINT           NOT NULL,
    updated_by   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
