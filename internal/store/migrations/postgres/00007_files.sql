-- +goose Up

-- Files. Their bytes are in a blob, which files with equal bytes share.
CREATE TABLE files (
    id           TEXT COLLATE "C"    PRIMARY KEY,
    workspace_id TEXT COLLATE "C"    NOT NULL,
    blob_id      TEXT COLLATE "C"    NOT NULL,
    name         TEXT COLLATE "C"    NOT NULL,
    type         TEXT COLLATE "C"    NOT NULL,
    size         BIGINT NOT NULL,
    sha256       TEXT COLLATE "C"    NOT NULL,
    list         TEXT COLLATE "C",             -- of a list file, as JSON: the number of items and the first of them
    holders      BIGINT NOT NULL, -- the number of rows in file_refs
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT           -- NULL: something refers to it
);
CREATE INDEX files_by_workspace ON files (workspace_id, id);
CREATE INDEX files_expiring ON files (expires_at) WHERE expires_at IS NOT NULL;

-- The bytes of files. Equal bytes of a workspace are stored once.
CREATE TABLE file_blobs (
    id           TEXT COLLATE "C"    PRIMARY KEY,
    workspace_id TEXT COLLATE "C"    NOT NULL,
    sha256       TEXT COLLATE "C"    NOT NULL,
    size         BIGINT NOT NULL,
    files        BIGINT NOT NULL -- the number of files that share it
);
CREATE UNIQUE INDEX file_blobs_by_hash ON file_blobs (workspace_id, sha256);

-- The holders of files: runs, versions, rows and so on. A file without one expires.
CREATE TABLE file_refs (
    holder       TEXT COLLATE "C" NOT NULL,
    file_id      TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (holder, file_id)
);

-- How many bytes each workspace stores and each run has created. Changes of the files of a
-- workspace lock its row first.
CREATE TABLE file_usage (
    owner     TEXT COLLATE "C"    PRIMARY KEY, -- a workspace or a run
    files     BIGINT NOT NULL,
    bytes     BIGINT NOT NULL,    -- of a workspace: those of its blobs, so equal bytes count once
    uploading BIGINT NOT NULL DEFAULT 0 -- the announced bytes of resumable uploads
);

-- Blobs without files whose bytes have yet to be deleted. Since 00015: purged_blobs.
CREATE TABLE blob_remains (id TEXT COLLATE "C" PRIMARY KEY);

-- Resumable uploads that are not complete. The id is that of the future file.
CREATE TABLE uploads (
    id           TEXT COLLATE "C"    PRIMARY KEY,
    workspace_id TEXT COLLATE "C"    NOT NULL,
    name         TEXT COLLATE "C"    NOT NULL,
    type         TEXT COLLATE "C"    NOT NULL,
    metadata     TEXT COLLATE "C"    NOT NULL, -- as the client sent it
    size         BIGINT NOT NULL,
    received     BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL
);
CREATE INDEX uploads_by_workspace ON uploads (workspace_id, id);
CREATE INDEX uploads_expiring ON uploads (expires_at);

-- The bytes of uploads, each part in a blob of its own.
CREATE TABLE upload_parts (
    upload_id TEXT COLLATE "C"    NOT NULL,
    start     BIGINT NOT NULL, -- the offset of its first byte
    blob_id   TEXT COLLATE "C"    NOT NULL,
    size      BIGINT NOT NULL,
    PRIMARY KEY (upload_id, start)
);
CREATE INDEX upload_parts_by_blob ON upload_parts (blob_id);

-- The bytes of blobs, if there is no bucket. They are sealed, so compression would only
-- cost time.
CREATE TABLE blobs (
    id         TEXT COLLATE "C" PRIMARY KEY,
    state      TEXT COLLATE "C" NOT NULL CHECK (state IN ('uploading', 'stored', 'deleted')),
    size       BIGINT NOT NULL, -- 0 until it is stored
    created_at BIGINT NOT NULL
);
CREATE INDEX blobs_unfinished ON blobs (created_at) WHERE state <> 'stored';
CREATE TABLE blob_chunks (
    blob_id TEXT COLLATE "C" NOT NULL REFERENCES blobs ON DELETE CASCADE,
    number  BIGINT NOT NULL,
    bytes   BYTEA NOT NULL,
    PRIMARY KEY (blob_id, number)
);
ALTER TABLE blob_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Where the bytes of files are. A node with another setting does not start.
CREATE TABLE files_place (
    id    BIGINT PRIMARY KEY CHECK (id = 1),
    place TEXT COLLATE "C" NOT NULL
);

-- The JSON pointers of the references to files inside a value beside them, as a JSON
-- array. NULL: it has none. What is not listed is plain data, whatever it looks like.
ALTER TABLE runs ADD COLUMN files TEXT COLLATE "C";                 -- of payload
ALTER TABLE run_drafts ADD COLUMN files TEXT COLLATE "C";           -- of definition
ALTER TABLE run_drafts ADD COLUMN pinned_files TEXT COLLATE "C";    -- of pinned
ALTER TABLE steps ADD COLUMN input_files TEXT COLLATE "C";          -- of input
ALTER TABLE steps ADD COLUMN output_files TEXT COLLATE "C";         -- of output
ALTER TABLE steps ADD COLUMN answer_files TEXT COLLATE "C";         -- of answer
ALTER TABLE workflow_versions ADD COLUMN files TEXT COLLATE "C";    -- of definition
ALTER TABLE workflows ADD COLUMN pinned_files TEXT COLLATE "C";     -- of pinned
ALTER TABLE hook_requests ADD COLUMN files TEXT COLLATE "C";        -- of payload
ALTER TABLE state_keys ADD COLUMN files TEXT COLLATE "C";           -- of value

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
