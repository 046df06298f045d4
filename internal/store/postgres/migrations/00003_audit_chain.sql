-- +goose Up

-- The place of an entry in the chain of its workspace and its hash, which covers
-- the entry and the hash of the previous one. NULL for entries that an earlier
-- release wrote, before this migration or beside it.
ALTER TABLE audit ADD COLUMN seq BIGINT;
ALTER TABLE audit ADD COLUMN hash BYTEA;
CREATE UNIQUE INDEX audit_by_seq ON audit (workspace_id, seq);
CREATE INDEX audit_unchained ON audit (id) WHERE seq IS NULL;

-- The last entry of each chain, and the last one that was purged.
CREATE TABLE audit_chains (
    workspace_id TEXT COLLATE "C" PRIMARY KEY,
    seq          BIGINT NOT NULL,
    hash         BYTEA NOT NULL,
    purged_seq   BIGINT NOT NULL,
    purged_hash  BYTEA NOT NULL
);

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
