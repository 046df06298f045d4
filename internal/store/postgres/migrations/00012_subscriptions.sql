-- +goose Up

-- The URLs at which services call, and what the services know about them. A subscription is
-- for one trigger, or for all triggers with the same connection where the service has one
-- URL for an account.
CREATE TABLE subscriptions (
    id            TEXT COLLATE "C" PRIMARY KEY,
    target        TEXT COLLATE "C" NOT NULL, -- what it is for, as in triggers.subscription
    workspace_id  TEXT COLLATE "C" NOT NULL,
    connection_id TEXT COLLATE "C" NOT NULL,
    hook          TEXT COLLATE "C" NOT NULL, -- such as github.events
    base_url      TEXT COLLATE "C" NOT NULL, -- the public URL of this installation that the service knows
    token_hash    BYTEA,                     -- of the secret part of the URL
    sealed        BYTEA,                     -- the token, the secrets and what the service has answered
    registered    BOOLEAN          NOT NULL, -- whether the service knows the URL
    expires_at    BIGINT,                    -- when the service forgets it
    next_at       BIGINT,                    -- when there is something to do next
    claimed_by    TEXT COLLATE "C",          -- the node that is doing it
    claimed_until BIGINT,                    -- until then, unless that node is gone
    failures      BIGINT           NOT NULL DEFAULT 0, -- in a row
    error_at      BIGINT,
    error_code    TEXT COLLATE "C",
    error_text    TEXT COLLATE "C",
    created_at    BIGINT           NOT NULL
);
CREATE UNIQUE INDEX subscriptions_by_target ON subscriptions (target);
CREATE UNIQUE INDEX subscriptions_by_token ON subscriptions (token_hash) WHERE token_hash IS NOT NULL;
CREATE INDEX subscriptions_by_connection ON subscriptions (connection_id);
CREATE INDEX subscriptions_due ON subscriptions (next_at) WHERE next_at IS NOT NULL;

ALTER TABLE triggers ADD COLUMN subscription TEXT COLLATE "C"; -- the target of the one that it needs
CREATE INDEX triggers_by_subscription ON triggers (subscription) WHERE subscription IS NOT NULL;

-- A node that polls owns a trigger until next_at, so a call of the service that comes in the
-- meantime does not change that, but has it polled again.
ALTER TABLE triggers ADD COLUMN polling    BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE triggers ADD COLUMN poll_again BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
-- A store is never migrated down: restore a backup instead.
SELECT 1;
