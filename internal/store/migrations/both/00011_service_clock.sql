-- +goose Up

-- The correction that makes the steady time out of the time of day. Deadlines of waits,
-- pauses and leases refer to the steady time, so that setting a clock does not move them.
CREATE TABLE service_clock (
    id         INTEGER PRIMARY KEY, -- always 1
    correction INTEGER NOT NULL DEFAULT 0, -- microseconds
    settled    INTEGER NOT NULL DEFAULT 0, -- the correction that waits for a time of day follow
    seen       INTEGER NOT NULL DEFAULT 0, -- a recent steady time
    boot       TEXT NOT NULL DEFAULT '', -- the boot of the machine that wrote the row last
    booted_at  INTEGER NOT NULL DEFAULT 0  -- the steady time of that boot
);

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
