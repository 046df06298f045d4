package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/dispatch"
	"github.com/stepmill/stepmill/internal/dispatch/local"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/news"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/sandbox"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/telemetry"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/web"
)

// Server is the whole service on the embedded database.
type Server struct {
	config    config.Serve
	log       *slog.Logger
	core      *core
	lock      *os.File
	node      string
	listener  *api.LimitListener // nil: a worker
	metrics   net.Listener       // nil: they are not shown
	outside   *egress.Client
	elsewhere func() // ends what reaches the identity provider
	scripts   *sandbox.Pool
	api       *api.Server
	runs      *run.Service
	usage     *usage.Service
	inbox     *trigger.Inbox
	engine    *engine.Engine
	courier   *webhook.Courier
	schedule  *trigger.Scheduler
	respond   *trigger.Responder
	poll      *trigger.Poller
	dispatch  dispatcher
	cluster   *cluster // nil: a process by itself
	role      string
	watchers  *run.Watchers
	starts    starts
	counts    *runCounts
	runNews   *news.Hub // by the ids of runs
	written   *news.Hub // events, by the ids of workspaces
	stopping  atomic.Bool
	telemetry *telemetry.Telemetry
	firstKey  string
	welcome   string // the link for the first user; empty when there is one
}

// dispatcher brings runs to the engine.
type dispatcher interface {
	dispatch.Source
	run.Queue
	Wake(run.Wake)
	Run(ctx context.Context) error
	Stats() dispatch.Stats
}

// NewServer opens the data and the listener. On a new installation it makes the
// first workspace.
func NewServer(ctx context.Context, data config.Data, serve config.Serve, log *slog.Logger) (s *Server, err error) {
	s = newServer(node.RoleServe, serve, log)
	data.Node = s.node
	defer func() {
		if err != nil {
			err = errors.Join(err, s.giveUp())
		}
	}()
	if err := s.open(ctx, data); err != nil {
		return s, err
	}
	// Other nodes are told where this one listens.
	if err := s.listen(ctx); err != nil {
		return s, err
	}
	if err := s.assemble(ctx, data); err != nil {
		return s, err
	}
	// Last of all: the first key is shown once, by a server that does start.
	if s.firstKey, err = s.core.auth.Bootstrap(ctx); err != nil {
		return s, fmt.Errorf("set up the first workspace: %w", err)
	}
	if s.welcome, err = s.core.people.WelcomeLink(ctx, s.base()); err != nil {
		return s, fmt.Errorf("make the link for the first user: %w", err)
	}
	return s, nil
}

// NewWorker opens the data of a node that executes runs and serves no requests.
func NewWorker(ctx context.Context, data config.Data, worker config.Worker, log *slog.Logger) (s *Server, err error) {
	if !data.Shared() {
		return nil, errors.New("a worker needs a database that it shares with others: name it with --database-url")
	}
	s = newServer(node.RoleWorker, config.Serve{Execute: worker.Execute, Place: config.Place{PublicURL: worker.PublicURL}}, log)
	data.Node = s.node
	defer func() {
		if err != nil {
			err = errors.Join(err, s.giveUp())
		}
	}()
	if err := s.open(ctx, data); err != nil {
		return s, err
	}
	if err := s.listenForMetrics(ctx); err != nil {
		return s, err
	}
	err = s.assemble(ctx, data)
	return s, err
}

func newServer(role string, serve config.Serve, log *slog.Logger) *Server {
	return &Server{
		config: serve, log: log, node: uid.New(uid.Node), role: role,
		watchers: run.NewWatchers(), counts: newRunCounts(), runNews: news.NewHub(), written: news.NewHub(),
	}
}

// giveUp takes back a start that did not come to its end.
func (s *Server) giveUp() error {
	var err error
	if s.starts.path != "" {
		err = s.starts.gaveUp()
	}
	return errors.Join(err, s.release())
}

// open opens the data: that in the data directory is for this process alone.
func (s *Server) open(ctx context.Context, data config.Data) (err error) {
	if !data.Shared() {
		if err := os.MkdirAll(data.Dir, 0o700); err != nil {
			return fmt.Errorf("make the data directory: %w", err)
		}
		if s.lock, err = lockDir(data.Dir); err != nil {
			return err
		}
		if s.starts, err = countStart(data.Dir, s.config.LeaveSafeMode); err != nil {
			return err
		}
	}
	failpoint.Hit(failpoint.AtStart, "")
	options := sqlite.Options{Migrate: s.config.Migrate || !data.Shared(), UnsafeFilesystem: s.config.UnsafeFilesystem}
	if s.core, err = openCore(ctx, data, options, s.notify()); err != nil {
		return err
	}
	if data.Shared() { // a rotation may be under way: the key that fits is used, and files stay as they are
		return nil
	}
	return s.core.settleMasterKey(data)
}

// assemble builds the services on the store.
func (s *Server) assemble(ctx context.Context, data config.Data) (err error) {
	st, v := s.core.store, s.core.vault
	policy := egress.Policy{Allow: config.Prefixes(s.config.EgressAllow)}
	s.outside = egress.New(egress.Config{
		Policy: policy, UserAgent: "Stepmill/" + config.VersionText(), Own: s.own,
	})
	if s.scripts, err = s.newSandbox(); err != nil {
		return err
	}
	actions, err := catalog.New(catalog.Means{HTTP: s.outside, Runs: starter{s}, Scripts: s.scripts})
	if err != nil {
		return err
	}
	cursors, err := paging.NewCodec(v.Derive("cursors"))
	if err != nil {
		return err
	}
	secrets := secret.NewService(st, v)
	links := run.NewLinks(st, v, s.base)
	s.inbox = trigger.NewInbox(st)
	s.usage = usage.NewService(st)
	plans := workflow.NewPlans(st, actions)
	if data.Shared() {
		if s.cluster, err = s.newCluster(ctx, data); err != nil {
			return err
		}
		s.dispatch = s.cluster.dispatch
	} else {
		s.dispatch = local.New(st, s.node, s.log)
	}
	s.runs = run.NewService(st, plans, s.watchers, s.dispatch, s.runNews)
	s.engine = engine.New(st, s.dispatch, plans, secrets, links, s.node, s.log)
	if s.cluster != nil {
		s.engine.Trust(s.cluster.member.Trusted)
	}
	s.courier = webhook.NewCourier(st, s.outside, v, s.log)
	flows := workflow.NewService(st, actions, names{secrets}, trigger.NewArming(v))
	s.schedule = trigger.NewScheduler(st, plans, s.runs, s.log)
	s.respond = trigger.NewResponder(st, s.runs, s.log)
	s.poll = trigger.NewPoller(st, plans, s.runs, secrets, actions, s.log)
	previews := run.NewPreviews(s.runs, secrets)
	provider, err := s.identityProvider()
	if err != nil {
		return err
	}
	s.api = api.New(api.Services{
		Auth: s.core.auth, Accounts: s.core.people, Actions: actions, Workflows: flows, Runs: s.runs, Links: links, Audit: audit.NewService(st), Usage: s.usage,
		Triggers:    trigger.NewService(st, flows, s.runs, v, actions, s.inbox, s.base),
		Hooks:       trigger.NewHooks(st, plans, s.runs, secrets, s.inbox),
		Webhooks:    webhook.NewService(st, v, policy, trigger.SampleEvent),
		Secrets:     secrets,
		Previews:    previews,
		Trials:      run.NewTrials(previews, plans, s.engine),
		Idempotency: idempotency.NewService(st, v),
		Events:      event.NewService(st, s.written),
		Nodes:       node.NewService(s.registry(), st, s.node),
	}, api.Options{
		Limits: s.limits(), Cursors: cursors, PreauthPerMinute: s.config.PreauthRPM, BodyBytes: bodyBytes(), TrustedProxies: config.Prefixes(s.config.TrustedProxy), Ready: s.ready, Log: s.log,
		StreamsPerWorkspace: s.config.StreamsPerWorkspace, PublicURL: s.base, Origin: s.config.PublicURL.Origin(), Version: config.VersionText(), Dashboard: web.Dashboard(),
		OIDC: provider, OIDCRole: account.Role(s.config.OIDC.Role),
	})
	return nil
}

// base is what links to the service begin with. A worker that was not told knows
// it from the nodes that serve requests; empty, there is none.
func (s *Server) base() string {
	switch {
	case s.listener != nil:
		return s.config.PublicURL.Or(s.listener.Addr())
	case s.config.PublicURL.Given():
		return s.config.PublicURL.Or(nil)
	default:
		return s.cluster.member.Others().URL
	}
}

// names tells workflows what their expressions can refer to.
type names struct{ secrets *secret.Service }

// Names implements workflow.Known.
func (n names) Names(ctx context.Context, workspaceID string) (workflow.Names, error) {
	found, err := n.secrets.Names(ctx, workspaceID)
	return workflow.Names(found), err
}

// bodyBytes is what the bodies of all requests may take together: a quarter of
// the memory that GOMEMLIMIT allows, if it does.
func bodyBytes() int64 {
	const unless = 512 << 20
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit / 4
	}
	return unless
}

// notify connects what the store tells after a commit with those who wait for
// it. The parts are made after the store, hence the functions.
func (s *Server) notify() store.Notify {
	return store.Notify{
		Wake: func(w run.Wake) { s.dispatch.Wake(w) },
		Stirred: func(runID string) {
			s.stir(runID)
			s.tell(postgres.RunStirred, runID)
		},
		Changed: func(runID string) {
			s.runNews.Tell(runID)
			s.tell(postgres.RunChanged, runID)
		},
		Recorded: func(workspaceID string) {
			s.written.Tell(workspaceID)
			s.tell(postgres.EventRecorded, workspaceID)
		},
		// It is not queued to be executed: the place that was kept for it is free.
		HeldBack: func(runID string) { s.dispatch.Unreserve(runID) },
		Started: func(workspaceID string) {
			s.counts.started.Add(1)
			s.usage.Count(workspaceID, func(d *usage.Day) { d.RunsStarted++ })
		},
		Ended: func(e run.Ending) {
			s.watchers.Ended(e.RunID, e.Detail)
			s.runNews.Tell(e.RunID)
			s.counts.ended.Add(string(e.Status))
			s.usage.Count(e.WorkspaceID, func(d *usage.Day) { countEnd(d, e.Status) })
			if e.Status == run.Cancelled {
				s.engine.Abort(e.RunID)
				s.tell(postgres.RunCancelled, e.RunID)
				return
			}
			s.tell(postgres.RunEnded, e.RunID)
		},
		Deliverable: func() {
			s.courier.Wake()
			s.tell(postgres.Deliverable, "")
		},
		Occasion: func(at time.Time) { s.respond.Wake(at) },
		Scheduled: func(kind string, at time.Time) {
			s.scheduled(kind, at)
			s.tell(postgres.Scheduled, "")
		},
		WorkflowDeleted: func(workflowID string) {
			s.engine.AbortWorkflow(workflowID)
			s.runNews.TellAll() // those who follow its runs find them gone
			s.tell(postgres.WorkflowDeleted, workflowID)
		},
	}
}

// scheduled tells those who fire triggers of a type.
func (s *Server) scheduled(kind string, at time.Time) {
	switch kind {
	case workflow.ScheduleTrigger:
		s.schedule.Wake(at)
	case workflow.PollTrigger:
		s.poll.Wake(at)
	}
}

func countEnd(d *usage.Day, status run.Status) {
	switch status {
	case run.Succeeded:
		d.RunsSucceeded++
	case run.Failed:
		d.RunsFailed++
	case run.Cancelled:
		d.RunsCancelled++
	}
}

// ready tells whether requests can be served: the store answers and no stop was
// asked for.
func (s *Server) ready(ctx context.Context) error {
	if s.stopping.Load() {
		return errors.New("the service is shutting down")
	}
	if s.cluster != nil && !s.cluster.member.Trusted() {
		return errors.New("the database has not heard of this node for too long")
	}
	if err := s.core.answers(ctx); err != nil {
		return errors.New("the store does not answer")
	}
	if s.starts.safe {
		return errSafeMode
	}
	if s.engine.Stuck() >= mostStuck {
		return fmt.Errorf("%d actions go on although their time is over: restart the service", mostStuck)
	}
	return nil
}

// mostStuck is how many actions may be left to themselves.
const mostStuck = 100

// Address is where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Greet tells a person where the service is, once, the first key and, as long as
// nobody owns the first workspace, how to make its owner.
func (s *Server) Greet(out io.Writer) {
	fmt.Fprintf(out, "Stepmill %s is ready at http://%s\n", config.VersionText(), s.Address())
	if s.firstKey != "" {
		fmt.Fprintf(out, "\nYour admin API key. It is shown this once, keep it safe:\n\n    %s\n\n", s.firstKey)
	}
	if s.welcome != "" {
		fmt.Fprintf(out, "There is no owner yet. Make the first account here, within 24 hours:\n\n    %s\n\n", s.welcome)
	}
}
