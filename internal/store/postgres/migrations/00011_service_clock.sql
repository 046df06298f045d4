-- +goose Up

-- The correction that makes the steady time out of the time of day. Deadlines of waits,
-- pauses and leases refer to the steady time, so that setting a clock does not move them.
CREATE TABLE service_clock (
    id         BIGINT PRIMARY KEY, -- always 1
    correction BIGINT NOT NULL DEFAULT 0, -- microseconds
    settled    BIGINT NOT NULL DEFAULT 0, -- the correction that waits for a time of day follow
    seen       BIGINT NOT NULL DEFAULT 0, -- a recent steady time
    boot       TEXT COLLATE "C" NOT NULL DEFAULT '', -- the boot of the machine that wrote the row last
    booted_at  BIGINT NOT NULL DEFAULT 0  -- the steady time of that boot
);

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
