-- +goose Up

-- The tables of workspaces. Columns is JSON.
CREATE TABLE data_tables (
    id           TEXT    PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    columns      TEXT    NOT NULL,
    key_column   TEXT    NOT NULL, -- empty: no key
    last_column  INTEGER NOT NULL,
    row_count    INTEGER NOT NULL,
    row_bytes    INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    updated_at   INTEGER NOT NULL,
    updated_by   TEXT    NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX data_tables_by_name ON data_tables (workspace_id, name);

-- The rows of tables. Data is JSON, by the ids of columns.
CREATE TABLE table_rows (
    table_id     TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    workspace_id TEXT    NOT NULL,
    unique_key   TEXT,             -- the value of the key column, in sortable form
    data         TEXT    NOT NULL,
    size         INTEGER NOT NULL, -- of data, in bytes
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (table_id, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX table_rows_by_key ON table_rows (table_id, unique_key) WHERE unique_key IS NOT NULL;

-- The values of indexed columns, in sortable form.
CREATE TABLE table_index (
    table_id     TEXT NOT NULL,
    column_id    TEXT NOT NULL,
    value        TEXT NOT NULL,
    row_id       TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    PRIMARY KEY (table_id, column_id, value, row_id)
) WITHOUT ROWID;

-- Deleted tables and indexes whose rows are still being deleted, in batches. Without a
-- column, it is the whole table. Since 00015: purged_tables.
CREATE TABLE table_remains (
    table_id  TEXT NOT NULL,
    column_id TEXT NOT NULL,
    PRIMARY KEY (table_id, column_id)
) WITHOUT ROWID;

-- The values that workflows and workspaces keep under a name.
CREATE TABLE state_keys (
    workspace_id TEXT    NOT NULL,
    workflow_id  TEXT    NOT NULL, -- empty: of the workspace
    name         TEXT    NOT NULL,
    value        TEXT    NOT NULL,
    size         INTEGER NOT NULL, -- of name and value, in bytes
    expires_at   INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, workflow_id, name)
) WITHOUT ROWID;
CREATE INDEX state_keys_expiring ON state_keys (expires_at) WHERE expires_at IS NOT NULL;

-- Counters for the limits of the plan. Changes of tables, rows or keys of a workspace lock
-- its row first.
CREATE TABLE state_usage (
    workspace_id TEXT    PRIMARY KEY,
    tables       INTEGER NOT NULL,
    table_rows   INTEGER NOT NULL,
    state_keys   INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL
) WITHOUT ROWID;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
