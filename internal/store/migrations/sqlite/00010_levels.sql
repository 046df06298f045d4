-- +goose Up

-- The release whose features a definition needs, and thus the nodes that can execute its
-- runs: see the package release. 0: any.
ALTER TABLE workflow_versions ADD COLUMN level INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_drafts        ADD COLUMN level INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_queue         ADD COLUMN level INTEGER NOT NULL DEFAULT 0;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
