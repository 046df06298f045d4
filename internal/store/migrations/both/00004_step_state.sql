-- +goose Up

-- The state in the last checkpoint of a step, sealed, while the step is open, and the
-- attempt that returned it.
ALTER TABLE steps ADD COLUMN state BLOB;
ALTER TABLE steps ADD COLUMN checkpoint_attempt INTEGER NOT NULL DEFAULT 0;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
