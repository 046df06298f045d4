-- +goose Up

-- Files. Their bytes are in a blob, which files with equal bytes share.
CREATE TABLE files (
    id           TEXT    PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    blob_id      TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    size         INTEGER NOT NULL,
    sha256       TEXT    NOT NULL,
    list         TEXT,             -- of a list file, as JSON: the number of items and the first of them
    holders      INTEGER NOT NULL, -- the number of rows in file_refs
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER           -- NULL: something refers to it
) WITHOUT ROWID;
CREATE INDEX files_by_workspace ON files (workspace_id, id);
CREATE INDEX files_expiring ON files (expires_at) WHERE expires_at IS NOT NULL;

-- The bytes of files. Equal bytes of a workspace are stored once.
CREATE TABLE file_blobs (
    id           TEXT    PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    sha256       TEXT    NOT NULL,
    size         INTEGER NOT NULL,
    files        INTEGER NOT NULL -- the number of files that share it
) WITHOUT ROWID;
CREATE UNIQUE INDEX file_blobs_by_hash ON file_blobs (workspace_id, sha256);

-- The holders of files: runs, versions, rows and so on. A file without one expires.
CREATE TABLE file_refs (
    holder       TEXT NOT NULL,
    file_id      TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    PRIMARY KEY (holder, file_id)
) WITHOUT ROWID;

-- How many bytes each workspace stores and each run has created. Changes of the files of a
-- workspace lock its row first.
CREATE TABLE file_usage (
    owner     TEXT    PRIMARY KEY, -- a workspace or a run
    files     INTEGER NOT NULL,
    bytes     INTEGER NOT NULL,    -- of a workspace: those of its blobs, so equal bytes count once
    uploading INTEGER NOT NULL DEFAULT 0 -- the announced bytes of resumable uploads
) WITHOUT ROWID;

-- Blobs without files whose bytes have yet to be deleted. Since 00015: purged_blobs.
CREATE TABLE blob_remains (id TEXT PRIMARY KEY) WITHOUT ROWID;

-- Resumable uploads that are not complete. The id is that of the future file.
CREATE TABLE uploads (
    id           TEXT    PRIMARY KEY,
    workspace_id TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    metadata     TEXT    NOT NULL, -- as the client sent it
    size         INTEGER NOT NULL,
    received     INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX uploads_by_workspace ON uploads (workspace_id, id);
CREATE INDEX uploads_expiring ON uploads (expires_at);

-- The bytes of uploads, each part in a blob of its own.
CREATE TABLE upload_parts (
    upload_id TEXT    NOT NULL,
    start     INTEGER NOT NULL, -- the offset of its first byte
    blob_id   TEXT    NOT NULL,
    size      INTEGER NOT NULL,
    PRIMARY KEY (upload_id, start)
) WITHOUT ROWID;
CREATE INDEX upload_parts_by_blob ON upload_parts (blob_id);

-- Where the bytes of files are. A node with another setting does not start.
CREATE TABLE files_place (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    place TEXT NOT NULL
);

-- The JSON pointers of the references to files inside a value beside them, as a JSON
-- array. NULL: it has none. What is not listed is plain data, whatever it looks like.
ALTER TABLE runs ADD COLUMN files TEXT;                 -- of payload
ALTER TABLE run_drafts ADD COLUMN files TEXT;           -- of definition
ALTER TABLE run_drafts ADD COLUMN pinned_files TEXT;    -- of pinned
ALTER TABLE steps ADD COLUMN input_files TEXT;          -- of input
ALTER TABLE steps ADD COLUMN output_files TEXT;         -- of output
ALTER TABLE steps ADD COLUMN answer_files TEXT;         -- of answer
ALTER TABLE workflow_versions ADD COLUMN files TEXT;    -- of definition
ALTER TABLE workflows ADD COLUMN pinned_files TEXT;     -- of pinned
ALTER TABLE hook_requests ADD COLUMN files TEXT;        -- of payload
ALTER TABLE state_keys ADD COLUMN files TEXT;           -- of value

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
