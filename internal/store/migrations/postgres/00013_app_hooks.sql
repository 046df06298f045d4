-- +goose Up

-- A service calls an OAuth app at one URL for all accounts that have installed it. These
-- decide which connections a call is for, so both come from the service, never from people.
ALTER TABLE connections ADD COLUMN app        TEXT COLLATE "C"; -- the app that it was made with
ALTER TABLE connections ADD COLUMN account_id TEXT COLLATE "C"; -- the account that the service has told
UPDATE connections SET account_id = learned::json ->> 'account' WHERE length(learned::json ->> 'account') BETWEEN 1 AND 255;
CREATE INDEX connections_by_app ON connections (app, account_id) WHERE app IS NOT NULL;

-- Verified calls for an account, until the triggers of all its connections have them.
CREATE TABLE app_calls (
    id           TEXT COLLATE "C" PRIMARY KEY,
    workspace_id TEXT COLLATE "C" NOT NULL, -- that of the app
    hook         TEXT COLLATE "C" NOT NULL, -- such as slack.events
    app          TEXT COLLATE "C" NOT NULL,
    account_id   TEXT COLLATE "C" NOT NULL,
    sealed       BYTEA            NOT NULL, -- the events
    received_at  BIGINT           NOT NULL,
    next_at      BIGINT           NOT NULL, -- when it is handed out next
    failures     BIGINT           NOT NULL
);
CREATE INDEX app_calls_due ON app_calls (next_at);
CREATE INDEX app_calls_by_account ON app_calls (app, account_id);

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
