// Package api owns the resources of the HTTP API: the route table, the input of each route,
// and the form of what it returns. The services decide what a request does; package
// transport owns HTTP.
package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/ownintegration"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/trigger"
	hooks "github.com/stepmill/stepmill/internal/trigger/webhook"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Services are the use cases that the API offers.
type Services struct {
	Auth      *auth.Service
	Accounts  *account.Service
	Actions   *action.Catalog
	Workflows *workflow.Service
	Runs      *run.Service
	Links     *run.Links
	Triggers  *trigger.Service

	Subscriptions *subscription.Service
	ServiceCalls  *subscription.Calls
	Hooks         *hooks.Hooks
	Webhooks      *webhook.Service
	Secrets       *secret.Service
	Connections   connection.Services
	Integrations  *ownintegration.Service
	Lists         *operation.Lists
	Tables        *table.Service
	Files         *file.Service
	State         *state.Service
	Previews      *run.Previews
	StepTester    *run.StepTester
	Audit         *audit.Service
	Usage         *usage.Service
	Idempotency   *idempotency.Service
	Events        *event.Service
	Nodes         *node.Service
}

// Options are the settings of the API.
type Options struct {
	transport.Options
	// Cursors encrypts the positions in lists.
	Cursors *paging.Codec
	// PublicURL returns the URL that links start with.
	PublicURL func() string
	// OIDC lets people sign in with an identity provider; nil disables it. A new
	// user gets OIDCRole, or is rejected if it is empty.
	OIDC     IdentityProvider
	OIDCRole account.Role
	Version  string
	// Ready returns an error if the service cannot handle requests.
	Ready func(context.Context) error
	// Warnings returns what restricts a service that is ready; nil for nothing.
	Warnings func() []string
}

// New returns a server with the routes of all resources.
func New(services Services, options Options) *transport.Server {
	if options.Limits == nil {
		options.Limits = ratelimit.New()
	}
	var routes transport.RouteTable
	register(&routes, newHandlers(services, options))
	return transport.New(transport.Services{
		Keys: services.Auth, Sessions: services.Accounts, Idempotency: services.Idempotency, Usage: services.Usage,
	}, options.Options, &routes)
}

type handlers struct {
	actions         actions
	auditLog        auditLog
	connections     connections
	consents        consents
	decisionLinks   decisionLinks
	documents       documents
	events          events
	files           files
	health          health
	integrations    integrations
	keys            keys
	members         members
	nodes           nodes
	oauthApps       oauthApps
	previews        previews
	providerSignIns providerSignIns
	runs            runs
	searches        searches
	secrets         secrets
	serviceCalls    serviceCalls
	sessions        sessions
	stateKeys       stateKeys
	tables          tables
	templates       templates
	triggers        triggers
	uploads         uploads
	usageReports    usageReports
	variables       variables
	webhookCalls    webhookCalls
	webhooks        webhooks
	welcome         welcome
	workflows       workflows
	workspaces      workspaces
}

func newHandlers(s Services, o Options) *handlers {
	starts := runStarts{s.Runs}
	h := &handlers{
		actions:       actions{s.Actions, s.Workflows, o.Cursors},
		auditLog:      auditLog{s.Audit, o.Cursors},
		connections:   connections{s.Connections.Connections, s.Connections.Tester, s.Lists, o.Cursors},
		decisionLinks: decisionLinks{s.Links, newDecisionPage()},
		documents:     documents{s.Workflows},
		events:        events{s.Events, s.Workflows, o.Cursors},
		files:         files{s.Files, o.Cursors, o.Log},
		health:        health{o.Ready, o.Warnings},
		integrations:  integrations{s.Integrations, s.Triggers, o.Cursors},
		keys:          keys{s.Auth, o.Cursors},
		members:       members{s.Accounts, o.PublicURL, o.Cursors},
		nodes:         nodes{s.Nodes, o.Cursors},
		oauthApps:     oauthApps{s.Connections.Apps, s.Subscriptions, o.PublicURL, o.Cursors},
		previews:      previews{s.Previews, s.StepTester, s.Workflows},
		runs:          runs{s.Runs, s.Workflows, s.Links, starts, o.Cursors},
		searches:      searches{s.Workflows, s.Runs},
		secrets:       newSecrets(s.Secrets, o.Cursors),
		serviceCalls:  serviceCalls{s.ServiceCalls, o.Limits},
		sessions:      sessions{s.Accounts, &signInLimits{s.Accounts, ratelimit.New(), o.PreauthPerMinute}, o.PublicURL, o.Version, o.Cursors, o.Log},
		stateKeys:     stateKeys{s.State, o.Cursors},
		tables:        tables{s.Tables, o.Cursors},
		templates:     templates{s.Workflows, o.Cursors},
		triggers:      triggers{s.Triggers, s.Subscriptions, starts, o.Cursors},
		uploads:       uploads{s.Files},
		usageReports:  usageReports{s.Usage, s.Files},
		variables:     newVariables(s.Secrets, o.Cursors),
		webhookCalls:  webhookCalls{s.Hooks, o.Limits, o.Log},
		webhooks:      webhooks{s.Webhooks, o.Cursors},
		workflows:     workflows{s.Workflows, o.Cursors},
		workspaces:    workspaces{s.Auth, o.Cursors},
	}
	h.consents = consents{s.Connections.Consents, &h.connections, o.PublicURL}
	h.welcome = welcome{s.Accounts, &h.sessions, o.OIDC != nil}
	h.providerSignIns = providerSignIns{s.Accounts, &h.sessions, o.OIDC, o.OIDCRole, o.PublicURL, o.Log}
	return h
}
