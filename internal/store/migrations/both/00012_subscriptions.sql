-- +goose Up

-- The URLs at which services call, and what the services know about them. A subscription is
-- for one trigger, or for all triggers with the same connection where the service has one
-- URL for an account.
CREATE TABLE subscriptions (
    id            TEXT    PRIMARY KEY,
    target        TEXT    NOT NULL, -- what it is for, as in triggers.subscription
    workspace_id  TEXT    NOT NULL,
    connection_id TEXT    NOT NULL,
    hook          TEXT    NOT NULL, -- such as github.events
    base_url      TEXT    NOT NULL, -- the public URL of this installation that the service knows
    token_hash    BLOB,             -- of the secret part of the URL
    sealed        BLOB,             -- the token, the secrets and what the service has answered
    registered    BOOLEAN NOT NULL, -- whether the service knows the URL
    expires_at    INTEGER,          -- when the service forgets it
    next_at       INTEGER,          -- when there is something to do next
    claimed_by    TEXT,             -- the node that is doing it
    claimed_until INTEGER,          -- until then, unless that node is gone
    failures      INTEGER NOT NULL DEFAULT 0, -- in a row
    error_at      INTEGER,
    error_code    TEXT,
    error_text    TEXT,
    created_at    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX subscriptions_by_target ON subscriptions (target);
CREATE UNIQUE INDEX subscriptions_by_token ON subscriptions (token_hash) WHERE token_hash IS NOT NULL;
CREATE INDEX subscriptions_by_connection ON subscriptions (connection_id);
CREATE INDEX subscriptions_due ON subscriptions (next_at) WHERE next_at IS NOT NULL;

ALTER TABLE triggers ADD COLUMN subscription TEXT; -- the target of the one that it needs
CREATE INDEX triggers_by_subscription ON triggers (subscription) WHERE subscription IS NOT NULL;

-- A node that polls owns a trigger until next_at, so a call of the service that comes in the
-- meantime does not change that, but has it polled again.
ALTER TABLE triggers ADD COLUMN polling    BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE triggers ADD COLUMN poll_again BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
