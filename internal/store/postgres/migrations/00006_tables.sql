-- +goose Up

-- The tables of workspaces. Columns is JSON.
CREATE TABLE data_tables (
    id           TEXT COLLATE "C"    PRIMARY KEY,
    workspace_id TEXT COLLATE "C"    NOT NULL,
    name         TEXT COLLATE "C"    NOT NULL,
    columns      TEXT COLLATE "C"    NOT NULL,
    key_column   TEXT COLLATE "C"    NOT NULL, -- empty: no key
    last_column  BIGINT NOT NULL,
    row_count    BIGINT NOT NULL,
    row_bytes    BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    created_by   TEXT COLLATE "C"    NOT NULL,
    updated_at   BIGINT NOT NULL,
    updated_by   TEXT COLLATE "C"    NOT NULL
);
CREATE UNIQUE INDEX data_tables_by_name ON data_tables (workspace_id, name);

-- The rows of tables. Data is JSON, by the ids of columns.
CREATE TABLE table_rows (
    table_id     TEXT COLLATE "C"    NOT NULL,
    id           TEXT COLLATE "C"    NOT NULL,
    workspace_id TEXT COLLATE "C"    NOT NULL,
    unique_key   TEXT COLLATE "C",             -- the value of the key column, in sortable form
    data         TEXT COLLATE "C"    NOT NULL,
    size         BIGINT NOT NULL, -- of data, in bytes
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (table_id, id)
);
CREATE UNIQUE INDEX table_rows_by_key ON table_rows (table_id, unique_key) WHERE unique_key IS NOT NULL;

-- The values of indexed columns, in sortable form.
CREATE TABLE table_index (
    table_id     TEXT COLLATE "C" NOT NULL,
    column_id    TEXT COLLATE "C" NOT NULL,
    value        TEXT COLLATE "C" NOT NULL,
    row_id       TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (table_id, column_id, value, row_id)
);

-- Deleted tables and indexes whose rows are still being deleted, in batches. Without a
-- column, it is the whole table. Since 00015: purged_tables.
CREATE TABLE table_remains (
    table_id  TEXT COLLATE "C" NOT NULL,
    column_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (table_id, column_id)
);

-- The values that workflows and workspaces keep under a name.
CREATE TABLE state_keys (
    workspace_id TEXT COLLATE "C"    NOT NULL,
    workflow_id  TEXT COLLATE "C"    NOT NULL, -- empty: of the workspace
    name         TEXT COLLATE "C"    NOT NULL,
    value        TEXT COLLATE "C"    NOT NULL,
    size         BIGINT NOT NULL, -- of name and value, in bytes
    expires_at   BIGINT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, workflow_id, name)
);
CREATE INDEX state_keys_expiring ON state_keys (expires_at) WHERE expires_at IS NOT NULL;

-- Counters for the limits of the plan. Changes of tables, rows or keys of a workspace lock
-- its row first.
CREATE TABLE state_usage (
    workspace_id TEXT COLLATE "C"    PRIMARY KEY,
    tables       BIGINT NOT NULL,
    table_rows   BIGINT NOT NULL,
    state_keys   BIGINT NOT NULL,
    stored_bytes BIGINT NOT NULL
);

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
