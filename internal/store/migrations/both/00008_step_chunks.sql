-- +goose Up

-- What each checkpoint has added to the state of an open step, sealed.
CREATE TABLE step_chunks (
    run_id TEXT    NOT NULL,
    path   TEXT    NOT NULL,
    number INTEGER NOT NULL,
    data   BLOB    NOT NULL,
    PRIMARY KEY (run_id, path, number)
) WITHOUT ROWID;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
