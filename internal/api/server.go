// Package api owns HTTP: the route table, decoding and checking of requests,
// the shape of answers and errors, authentication, rate limits and the other
// headers that every response carries. What a request does is decided by the
// services; the wire types are this package's own.
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
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/tally"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Services are the use cases that the API offers.
type Services struct {
	Auth        *auth.Service
	Accounts    *account.Service
	Actions     *action.Catalog
	Workflows   *workflow.Service
	Runs        *run.Service
	Links       *run.Links
	Triggers    *trigger.Service
	Hooks       *trigger.Hooks
	Webhooks    *webhook.Service
	Secrets     *secret.Service
	Previews    *run.Previews
	Trials      *run.Trials
	Audit       *audit.Service
	Usage       *usage.Service
	Idempotency *idempotency.Service
	Events      *event.Service
	Nodes       *node.Service
}

// Options are the settings of the API.
type Options struct {
	// Cursors seals the positions in lists.
	Cursors *paging.Codec
	// Limits counts the requests of workspaces; nil: in memory, for this process
	// alone.
	Limits Limits
	// PreauthPerMinute bounds failed authentications of one address.
	PreauthPerMinute int
	// TrustedProxies are those whose X-Forwarded-For counts.
	TrustedProxies []netip.Prefix
	// BodyBytes bounds the bodies of all requests together; zero: nothing does.
	BodyBytes int64
	// StreamsPerWorkspace bounds the open streams of a workspace; zero for 100.
	StreamsPerWorkspace int
	// Dashboard has the files of the built dashboard, as a part of the program;
	// nil serves none.
	Dashboard fs.FS
	// RequestsPerUser bounds what a person who is signed in asks for in a minute;
	// zero for 3,000.
	RequestsPerUser int
	// Origin is where browsers see the service, if a proxy hides it from us, such
	// as https://flows.example.com.
	Origin string
	// PublicURL is what links begin with.
	PublicURL func() string
	// OIDC is where people can show who they are; nil: nowhere. Somebody who is
	// no user gets OIDCRole, or is refused if it is empty.
	OIDC     IdentityProvider
	OIDCRole account.Role
	// Version is that of the program.
	Version string
	// Ready tells whether the service can work; an error says why not.
	Ready func(context.Context) error
	Log   *slog.Logger
}

// Limits counts the requests of workspaces.
type Limits interface {
	// Take counts a request of one that is allowed a number of them a minute.
	// It answers where the workspace stands, whatever else it answers, and
	// false for a request too many.
	Take(ctx context.Context, workspaceID string, perMinute int, now time.Time) (ratelimit.State, bool, error)
}

// Server answers requests.
type Server struct {
	Services
	Options
	routes  table
	preauth *ratelimit.Limiter
	// people counts by user, attempts those to sign in.
	people   *ratelimit.Limiter
	attempts *ratelimit.Limiter
	origins  *http.CrossOriginProtection
	bodies   bodies
	streams  *openStreams
	// unmatched counts requests that fit no route, errors all that failed.
	unmatched *served
	errors    *tally.Set
	doors     []door
	pages     pages
	dashboard *dashboard
	// stopping ends every stream when it ends.
	stopping   context.Context
	endStreams context.CancelFunc
}

// New makes a server.
func New(services Services, options Options) *Server {
	s := &Server{
		Services: services, Options: options,
		preauth: ratelimit.New(), people: ratelimit.New(), attempts: ratelimit.New(), origins: http.NewCrossOriginProtection(),
		bodies: bodies{most: options.BodyBytes}, streams: newOpenStreams(), unmatched: newServed(), errors: newErrors(), pages: newPages(),
	}
	if s.Origin != "" {
		if err := s.origins.AddTrustedOrigin(s.Origin); err != nil {
			panic(err) // the settings have checked it
		}
	}
	s.doors = s.openDoors()
	s.dashboard = newDashboard(options.Dashboard, s.doors)
	s.stopping, s.endStreams = context.WithCancel(context.Background())
	if s.Limits == nil {
		s.Limits = ratelimit.New()
	}
	if s.StreamsPerWorkspace == 0 {
		s.StreamsPerWorkspace = defaultStreams
	}
	if s.RequestsPerUser == 0 {
		s.RequestsPerUser = defaultPerUser
	}
	s.routes = newTable(s.answer)
	s.register(&s.routes)
	return s
}

// Handler is the whole API as one handler.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// HTTP makes the HTTP server with its limits. Slow and oversized clients are
// cut off before they cost anything.
func (s *Server) HTTP() *http.Server {
	server := &http.Server{
		Handler: s.Handler(),
		// OPTIONS * is answered like everything else.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	// Streams end when the server begins to stop, which waits for all requests.
	server.RegisterOnShutdown(s.endStreams)
	return server
}
