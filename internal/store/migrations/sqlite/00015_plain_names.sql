-- +goose Up

-- Tables and columns with names that the code uses. Nothing else changes.

-- Runs that are not finished.
ALTER TABLE run_queue RENAME COLUMN turn        TO admitted;          -- 0: queued, because the concurrency limit of its key is reached
ALTER TABLE run_queue RENAME COLUMN blamed      TO suspects;          -- the steps that were executing when a process crashed
ALTER TABLE run_queue RENAME COLUMN ran         TO execution_time;    -- the time for which steps have been executed, in nanoseconds
ALTER TABLE run_queue RENAME COLUMN logged      TO log_bytes;         -- the size of the lines in step_logs
ALTER TABLE run_queue RENAME COLUMN share_key   TO concurrency_key;   -- NULL: its workflow has no concurrency limit
ALTER TABLE run_queue RENAME COLUMN share_limit TO concurrency_limit; -- how many admitted runs may have this key
DROP INDEX run_queue_by_share;
CREATE INDEX run_queue_by_concurrency_key ON run_queue (workflow_id, concurrency_key, admitted, run_id) WHERE concurrency_key IS NOT NULL;
ALTER TABLE runs RENAME COLUMN share_key TO concurrency_key;

-- Events that start a run of an event trigger.
ALTER TABLE occasions RENAME TO pending_triggers;
DROP INDEX occasions_due;
DROP INDEX occasions_by_event;
CREATE INDEX pending_triggers_due ON pending_triggers (next_at, event_id);
CREATE INDEX pending_triggers_by_event ON pending_triggers (event_id);

-- When and why a trigger last was due and started no run.
ALTER TABLE triggers RENAME COLUMN idle_at   TO not_fired_at;
ALTER TABLE triggers RENAME COLUMN idle_code TO not_fired_code;
ALTER TABLE triggers RENAME COLUMN idle_text TO not_fired_text;

-- What was purged while rows or bytes of it remain, which are removed in batches.
ALTER TABLE run_remains   RENAME TO purged_runs;
ALTER TABLE table_remains RENAME TO purged_tables; -- without a column: the table, otherwise the index of the column
ALTER TABLE blob_remains  RENAME TO purged_blobs;

-- What receivers of webhooks responded, and what this server responded to a request.
ALTER TABLE delivery_attempts RENAME COLUMN answer TO response;
ALTER TABLE idempotency       RENAME COLUMN answer TO response;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
