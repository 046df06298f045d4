-- +goose Up

-- The release whose features a definition needs, and thus the nodes that can execute its
-- runs: see the package release. 0: any.
ALTER TABLE workflow_versions ADD COLUMN level BIGINT NOT NULL DEFAULT 0;
ALTER TABLE run_drafts        ADD COLUMN level BIGINT NOT NULL DEFAULT 0;
ALTER TABLE run_queue         ADD COLUMN level BIGINT NOT NULL DEFAULT 0;

-- The release of a node. The column has no default: a node of a release that does not
-- know levels can then send no heartbeat, and executes nothing.
ALTER TABLE nodes ADD COLUMN level BIGINT;
UPDATE nodes SET level = 0;
ALTER TABLE nodes ALTER COLUMN level SET NOT NULL;

-- The release that this schema came with. The first migration of each release sets it.
CREATE TABLE schema_release (number BIGINT NOT NULL);
INSERT INTO schema_release (number) VALUES (3);

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
