package store_test

import (
	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/dispatch/local"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/ownintegration"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/trigger"
	hooks "github.com/stepmill/stepmill/internal/trigger/webhook"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Each store implements the interfaces of its domain package.
var (
	_ account.Store             = store.Accounts{}
	_ audit.Store               = store.Audit{}
	_ audit.ChainStore          = store.Audit{}
	_ connection.Stores         = store.Connections{}
	_ event.Store               = store.Events{}
	_ file.Store                = store.Files{}
	_ idempotency.Store         = store.Idempotency{}
	_ engine.Store              = store.Leases{}
	_ local.Store               = store.Leases{}
	_ ownintegration.Store      = store.OwnIntegrations{}
	_ ratelimit.TokenStore      = store.RateLimits{}
	_ run.Store                 = store.Runs{}
	_ run.LinkStore             = store.Runs{}
	_ run.PruneStore            = store.Runs{}
	_ node.Store                = store.Runs{}
	_ secret.Store              = store.Secrets{}
	_ state.Store               = store.State{}
	_ subscription.CallStore    = store.Subscriptions{}
	_ table.Store               = store.Tables{}
	_ trigger.Store             = store.Triggers{}
	_ trigger.InboxStore        = store.Triggers{}
	_ trigger.PendingEventStore = store.Triggers{}
	_ hooks.HookStore           = store.Triggers{}
	_ usage.Store               = store.Usage{}
	_ webhook.Store             = store.Webhooks{}
	_ webhook.Outbox            = store.Webhooks{}
	_ webhook.Outbox            = store.NodeOutbox{}
	_ workflow.Store            = store.Workflows{}
	_ workflow.Definitions      = store.Workflows{}
	_ auth.Store                = store.Workspaces{}
	_ vault.Keys                = store.Workspaces{}
	_ runqueue.Store            = (*store.DB)(nil)
)
