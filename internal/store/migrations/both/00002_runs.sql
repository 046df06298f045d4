-- +goose Up

-- Who started a run: the type and id of an API key or a user, and the name it had
-- then. NULL for runs that a trigger or a step started.
ALTER TABLE runs ADD COLUMN started_by_type TEXT;
ALTER TABLE runs ADD COLUMN started_by_id TEXT;
ALTER TABLE runs ADD COLUMN started_by_name TEXT;

-- The step that an unfinished run waits for, as of its last commit.
ALTER TABLE run_queue ADD COLUMN waiting_step TEXT;
UPDATE run_queue SET waiting_step = (
    SELECT s.path FROM steps s WHERE s.run_id = run_queue.run_id AND s.status = 'waiting'
    ORDER BY s.wake_at IS NULL, s.wake_at, s.seq LIMIT 1
) WHERE NOT EXISTS (
    SELECT 1 FROM steps s WHERE s.run_id = run_queue.run_id AND s.status = 'running' AND s.type NOT IN ('foreach', 'repeat')
);

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
