-- +goose Up

-- The steady time, which the ends of waits, pauses and leases refer to. It goes on when
-- a clock is set: it is that of the clock plus the correction.
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
