-- +goose Up

-- Earlier names of connections, under which workflows still find them.
CREATE TABLE connection_aliases (
    workspace_id  TEXT NOT NULL,
    name          TEXT NOT NULL,
    connection_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, name)
) WITHOUT ROWID;
CREATE INDEX connection_aliases_by_connection ON connection_aliases (connection_id);

-- Who may use a connection in workflows, apart from the person who created it.
ALTER TABLE connections ADD COLUMN access  TEXT NOT NULL DEFAULT 'everyone';
ALTER TABLE connections ADD COLUMN members TEXT NOT NULL DEFAULT '[]'; -- JSON, ids of users

-- When the consent ends, and when people are to be warned of that; NULL: no longer.
ALTER TABLE connections ADD COLUMN consent_ends_at INTEGER;
ALTER TABLE connections ADD COLUMN warn_at INTEGER;
CREATE INDEX connections_by_warning ON connections (warn_at) WHERE warn_at IS NOT NULL;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
