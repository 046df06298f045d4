-- +goose Up

-- Why a call of a webhook trigger was rejected. Of a call that was not verified nothing is
-- stored that its sender has chosen.
ALTER TABLE hook_requests ADD COLUMN reason   TEXT;
ALTER TABLE hook_requests ADD COLUMN verified BOOLEAN NOT NULL DEFAULT TRUE;

-- Until when the trigger of a workflow that is not active accepts one call as a test.
ALTER TABLE triggers ADD COLUMN listening_until INTEGER;
CREATE INDEX triggers_listening ON triggers (workspace_id) WHERE listening_until IS NOT NULL;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
