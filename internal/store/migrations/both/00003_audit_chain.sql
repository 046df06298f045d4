-- +goose Up

-- The place of an entry in the chain of its workspace and its hash, which covers
-- the entry and the hash of the previous one. NULL for entries that an earlier
-- release wrote, before this migration or beside it.
ALTER TABLE audit ADD COLUMN seq INTEGER;
ALTER TABLE audit ADD COLUMN hash BLOB;
CREATE UNIQUE INDEX audit_by_seq ON audit (workspace_id, seq);
CREATE INDEX audit_unchained ON audit (id) WHERE seq IS NULL;

-- The last entry of each chain, and the last one that was purged.
CREATE TABLE audit_chains (
    workspace_id TEXT PRIMARY KEY,
    seq          INTEGER NOT NULL,
    hash         BLOB NOT NULL,
    purged_seq   INTEGER NOT NULL,
    purged_hash  BLOB NOT NULL
) WITHOUT ROWID;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
