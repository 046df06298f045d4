// Package transport owns HTTP: the limits of connections and bodies, the route table, the
// decoding of requests, authentication, rate limits, idempotency, the format of responses
// and errors, streams, and the headers that every response has. It does not know any
// resource: package api registers their handlers.
package transport

import (
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/counter"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/ratelimit"
	"github.com/stepmill/stepmill/internal/usage"
)

// Services are the use cases that every request needs.
type Services struct {
	// Keys authenticates programs, Sessions people.
	Keys        *auth.Service
	Sessions    *account.Service
	Idempotency *idempotency.Service
	Usage       *usage.Service
}

// Options are the settings of the server.
type Options struct {
	// Limits counts the requests of workspaces; nil counts in memory, for this
	// process only.
	Limits ratelimit.Limits
	// PreauthPerMinute limits the failed authentications of one address.
	PreauthPerMinute int
	// RequestsPerUser limits the requests per minute of a signed-in user; zero:
	// 3,000.
	RequestsPerUser int
	// TrustedProxies lists the proxies whose X-Forwarded-For header is used.
	TrustedProxies []netip.Prefix
	// BodyBytes limits the total size of request bodies in flight; zero: no limit.
	BodyBytes int64
	// StreamsPerWorkspace limits the open streams of a workspace; zero: 100.
	StreamsPerWorkspace int
	// Dashboard holds the files of the built dashboard; nil serves none.
	Dashboard fs.FS
	// Origin is the origin that browsers use if a proxy hides it, such as
	// https://flows.example.com.
	Origin string
	// StorageStalled reports whether the storage has stopped responding. If it is
	// nil, the storage itself limits how long requests wait.
	StorageStalled func() bool
	Log            *slog.Logger
}

// Server handles requests.
type Server struct {
	Options
	services Services
	routes   *RouteTable
	preauth  *ratelimit.Limiter
	perUser  *ratelimit.Limiter // counts the requests of users
	origins  *http.CrossOriginProtection
	bodies   *bodyBudget
	guard    *stallGuard
	drains   *drains
	streams  *openStreams
	// unmatched counts requests that match no route, errors those that failed.
	unmatched *requestStats
	errors    *counter.Set
	dashboard *dashboard
	// stopping is canceled on shutdown, which ends every stream.
	stopping   context.Context
	endStreams context.CancelFunc
}

// New returns a server with the routes.
func New(services Services, options Options, routes *RouteTable) *Server {
	s := &Server{
		Options: options, services: services, routes: routes,
		preauth: ratelimit.New(), perUser: ratelimit.New(), origins: http.NewCrossOriginProtection(),
		bodies: newBodyBudget(options.BodyBytes), guard: &stallGuard{requests: map[*guardedRequest]struct{}{}}, drains: newDrains(), streams: newOpenStreams(),
		unmatched: newRequestStats(), errors: newErrors(), dashboard: newDashboard(options.Dashboard, routes.public),
	}
	if s.Origin != "" {
		if err := s.origins.AddTrustedOrigin(s.Origin); err != nil {
			panic(err) // the configuration has validated it
		}
	}
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
