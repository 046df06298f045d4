// Package api owns HTTP: the route table, the decoding and validation of
// requests, the format of responses and errors, authentication, rate limits and
// the headers that every response has. The services decide what a request does;
// the wire types belong to this package.
package api

import (
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/counter"
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
	Connections   *connection.Service
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
	// Cursors encrypts the positions in lists.
	Cursors *paging.Codec
	// Limits counts the requests of workspaces; nil counts in memory, for this
	// process only.
	Limits Limits
	// PreauthPerMinute limits the failed authentications of one address.
	PreauthPerMinute int
	// TrustedProxies lists the proxies whose X-Forwarded-For header is used.
	TrustedProxies []netip.Prefix
	// BodyBytes limits the total size of request bodies in flight; zero: no limit.
	BodyBytes int64
	// StreamsPerWorkspace limits the open streams of a workspace; zero: 100.
	StreamsPerWorkspace int
	// Dashboard holds the files of the built dashboard; nil serves none.
	Dashboard fs.FS
	// RequestsPerUser limits the requests per minute of a signed-in user; zero:
	// 3,000.
	RequestsPerUser int
	// Origin is the origin that browsers use if a proxy hides it, such as
	// https://flows.example.com.
	Origin string
	// PublicURL returns the URL that links start with.
	PublicURL func() string
	// OIDC lets people sign in with an identity provider; nil disables it. A new
	// user gets OIDCRole, or is rejected if it is empty.
	OIDC     IdentityProvider
	OIDCRole account.Role
	// Version is the version of the program.
	Version string
	// Ready returns an error if the service cannot handle requests.
	Ready func(context.Context) error
	// Warnings returns what restricts a service that is ready; nil for nothing.
	Warnings func() []string
	// StorageStalled reports whether the storage has stopped responding. If it is
	// nil, the storage itself limits how long requests wait.
	StorageStalled func() bool
	Log            *slog.Logger
}

// Limits counts the requests of workspaces and the calls of hooks.
type Limits interface {
	// Take counts a request against a limit per minute. It always returns the
	// state of the limit, and false if the request exceeds it.
	Take(ctx context.Context, key string, perMinute int, now time.Time) (ratelimit.State, bool, error)
	// Peek returns the state of a limit without counting a request. Nothing remains
	// if the next request would exceed it.
	Peek(key string, perMinute int, now time.Time) ratelimit.State
}

// Server handles requests.
type Server struct {
	Services
	Options
	routes  routeTable
	preauth *ratelimit.Limiter
	// perUser counts the requests of users, signInAttempts attempts to sign in.
	perUser        *ratelimit.Limiter
	signInAttempts *ratelimit.Limiter
	origins        *http.CrossOriginProtection
	bodies         *bodyBudget
	guard          *stallGuard
	drains         *drains
	streams        *openStreams
	// unmatched counts requests that match no route, errors those that failed.
	unmatched    *requestStats
	errors       *counter.Set
	publicRoutes []publicRoute
	pages        pages
	dashboard    *dashboard
	// stopping is canceled on shutdown, which ends every stream.
	stopping   context.Context
	endStreams context.CancelFunc
}

// New returns a server.
func New(services Services, options Options) *Server {
	s := &Server{
		Services: services, Options: options,
		preauth: ratelimit.New(), perUser: ratelimit.New(), signInAttempts: ratelimit.New(), origins: http.NewCrossOriginProtection(),
		bodies: newBodyBudget(options.BodyBytes), guard: newStallGuard(), drains: newDrains(), streams: newOpenStreams(), unmatched: newRequestStats(), errors: newErrors(), pages: newPages(),
	}
	if s.Origin != "" {
		if err := s.origins.AddTrustedOrigin(s.Origin); err != nil {
			panic(err) // the configuration has validated it
		}
	}
	s.publicRoutes = s.registerPublicRoutes()
	s.dashboard = newDashboard(options.Dashboard, s.publicRoutes)
	s.stopping, s.endStreams = context.WithCancel(context.Background())
	if s.Limits == nil {
		s.Limits = ratelimit.New()
	}
	if s.StreamsPerWorkspace == 0 {
		s.StreamsPerWorkspace = defaultStreams
	}
	if s.RequestsPerUser == 0 {
		s.RequestsPerUser = defaultRequestsPerUser
	}
	s.register(&s.routes)
	return s
}

// Handler returns the handler of all routes.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// HTTP returns the HTTP server. Its limits cut off slow and oversized requests
// before they cost anything.
func (s *Server) HTTP() *http.Server {
	server := &http.Server{
		Handler: s.Handler(),
		// OPTIONS * is handled like any other request.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second, // until a body is read; see bodyReader
		WriteTimeout:      responseTime,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	// Shutdown waits for all requests, so streams have to end when it starts.
	server.RegisterOnShutdown(s.endStreams)
	return server
}
