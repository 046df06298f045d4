-- +goose Up

-- What each checkpoint has added to the state of an open step, sealed.
CREATE TABLE step_chunks (
    run_id TEXT COLLATE "C" NOT NULL,
    path   TEXT COLLATE "C" NOT NULL,
    number BIGINT           NOT NULL,
    data   BYTEA            NOT NULL,
    PRIMARY KEY (run_id, path, number)
);

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
