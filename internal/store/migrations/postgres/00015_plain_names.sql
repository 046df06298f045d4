-- +goose Up

-- Tables and columns with names that the code uses. Nothing else changes. Nodes of earlier
-- releases do not know these names, so none may be running (see checkOlderNodes).

-- Runs that are not finished.
ALTER TABLE run_queue RENAME COLUMN turn        TO admitted;          -- false: queued, because the concurrency limit of its key is reached
ALTER TABLE run_queue RENAME COLUMN parked      TO throttled;         -- due, but its workspace has no free slot
ALTER TABLE run_queue RENAME COLUMN adrift      TO orphaned;          -- imported without a job: the leader enqueues it
ALTER TABLE run_queue RENAME COLUMN blamed      TO suspects;          -- the steps that were executing when a process crashed
ALTER TABLE run_queue RENAME COLUMN ran         TO execution_time;    -- the time for which steps have been executed, in nanoseconds
ALTER TABLE run_queue RENAME COLUMN logged      TO log_bytes;         -- the size of the lines in step_logs
ALTER TABLE run_queue RENAME COLUMN share_key   TO concurrency_key;   -- NULL: its workflow has no concurrency limit
ALTER TABLE run_queue RENAME COLUMN share_limit TO concurrency_limit; -- how many admitted runs may have this key
ALTER INDEX run_queue_parked   RENAME TO run_queue_throttled;
ALTER INDEX run_queue_adrift   RENAME TO run_queue_orphaned;
ALTER INDEX run_queue_by_share RENAME TO run_queue_by_concurrency_key;
ALTER TABLE runs RENAME COLUMN share_key TO concurrency_key;

-- How many runs of a workspace have a slot and how many are throttled.
ALTER TABLE workspace_load RENAME COLUMN parked   TO throttled;
ALTER TABLE workspace_load RENAME COLUMN given    TO slot_granted;        -- whether the last run that asked for a slot got one
ALTER TABLE workspace_load RENAME COLUMN audience TO subscribers_version; -- changes with the webhooks and event triggers of the workspace: caches compare it

-- The node that sends the deliveries of a webhook.
ALTER TABLE couriers RENAME TO webhook_owners;
ALTER INDEX couriers_pkey    RENAME TO webhook_owners_pkey;
ALTER INDEX couriers_by_node RENAME TO webhook_owners_by_node;

-- The node that does what one node at a time does for all.
ALTER TABLE terms RENAME TO leaderships;
ALTER INDEX terms_pkey RENAME TO leaderships_pkey;
UPDATE leaderships SET name = 'housekeeping' WHERE name = 'tidy';

-- Events that start a run of an event trigger.
ALTER TABLE occasions RENAME TO pending_triggers;
ALTER INDEX occasions_pkey     RENAME TO pending_triggers_pkey;
ALTER INDEX occasions_due      RENAME TO pending_triggers_due;
ALTER INDEX occasions_by_event RENAME TO pending_triggers_by_event;

-- When and why a trigger last was due and started no run.
ALTER TABLE triggers RENAME COLUMN idle_at   TO not_fired_at;
ALTER TABLE triggers RENAME COLUMN idle_code TO not_fired_code;
ALTER TABLE triggers RENAME COLUMN idle_text TO not_fired_text;

-- What was purged while rows or bytes of it remain, which are removed in batches.
ALTER TABLE run_remains RENAME TO purged_runs;
ALTER INDEX run_remains_pkey RENAME TO purged_runs_pkey;
ALTER TABLE table_remains RENAME TO purged_tables; -- without a column: the table, otherwise the index of the column
ALTER INDEX table_remains_pkey RENAME TO purged_tables_pkey;
ALTER TABLE blob_remains RENAME TO purged_blobs;
ALTER INDEX blob_remains_pkey RENAME TO purged_blobs_pkey;

-- What receivers of webhooks responded, and what this server responded to a request.
ALTER TABLE delivery_attempts RENAME COLUMN answer TO response;
ALTER TABLE idempotency       RENAME COLUMN answer TO response;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
