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
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/sandbox"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/postgres"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/telemetry"
	"github.com/stepmill/stepmill/internal/trigger"
	triggers "github.com/stepmill/stepmill/internal/trigger/catalog"
	hooks "github.com/stepmill/stepmill/internal/trigger/webhook"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
	"github.com/stepmill/stepmill/web"
)

// Server is a node: the service with its database.
type Server struct {
	config       config.Serve
	log          *slog.Logger
	core         *core
	lock         *os.File
	node         string
	listener     *api.LimitListener // nil: a worker
	metrics      net.Listener       // nil: not served
	egress       *egress.Client
	closeOIDC    func() // closes connections to the identity provider
	scripts      *sandbox.Pool
	api          *api.Server
	runs         *run.Service
	usage        *usage.Service
	inbox        *trigger.Inbox
	engine       *engine.Engine
	sender       *webhook.Sender
	triggerTypes *trigger.Types // nil until assembled: those of the catalog
	firers       *trigger.Firers
	dispatch     dispatcher
	cluster      *cluster // nil: a single process
	role         string
	watchers     *run.Watchers
	starts       starts
	counts       *runCounts
	runChanges   *pubsub.Broker // by run id
	eventChanges *pubsub.Broker // by workspace id
	stopping     atomic.Bool
	shared       atomic.Bool // there is more than one workspace
	awaitsSpace  atomic.Bool // no runs are executed until the disk has space
	telemetry    *telemetry.Telemetry
	firstKey     string
	welcomeLink  string // for the first user; empty when there is an owner
	runCommand   CommandRunner
	commands     net.Listener // nil if commands cannot reach the server
	dataDir      string
}

// dispatcher brings runs to the engine.
type dispatcher interface {
	dispatch.Source
	run.Queue
	Wake(run.Wake)
	Run(ctx context.Context) error
	Stats() dispatch.Stats
}

// Option changes how a server is assembled.
type Option func(*Server)

// WithPasswordCost hashes passwords at another cost than account.DefaultCost.
func WithPasswordCost(cost account.Cost) Option {
	return func(s *Server) { s.core.accounts = account.NewService(s.core.store, account.WithCost(cost)) }
}

// NewServer opens the data and the listener. On a new installation it creates the
// first workspace.
func NewServer(ctx context.Context, data config.Data, serve config.Serve, log *slog.Logger, options ...Option) (s *Server, err error) {
	if serve.DiskTimeout != 0 && serve.DiskTimeout <= api.StallDelay {
		return nil, fmt.Errorf("--disk-timeout must be more than %s, or 0s for no limit", api.StallDelay)
	}
	s = newServer(node.RoleServe, serve, log)
	data.Node = s.node
	defer func() {
		if err != nil {
			err = errors.Join(err, s.abortStart())
		}
	}()
	if err := s.open(ctx, data); err != nil {
		return s, err
	}
	for _, apply := range options {
		apply(s)
	}
	// Listen before joining the cluster: the addresses are announced to other nodes.
	if err := s.listen(ctx); err != nil {
		return s, err
	}
	if err := s.assemble(ctx, data); err != nil {
		return s, err
	}
	// Bootstrap comes last: the first key is shown only once, so the start must not
	// fail after it.
	if s.firstKey, err = s.core.auth.Bootstrap(ctx); err != nil {
		return s, fmt.Errorf("set up the first workspace: %w", err)
	}
	s.welcomeLink, err = s.core.accounts.WelcomeLink(ctx, s.publicURL())
	if fault.Is(err, fault.StorageFull) {
		s.log.Warn("cannot create the link for the first user; free some space and restart", "error", err)
	} else if err != nil {
		return s, fmt.Errorf("create the link for the first user: %w", err)
	}
	s.listenForCommands(ctx, data.Dir)
	return s, nil
}

// NewWorker opens the data of a node that executes runs and serves no requests.
func NewWorker(ctx context.Context, data config.Data, worker config.Worker, log *slog.Logger) (s *Server, err error) {
	if !data.Shared() {
		return nil, errors.New("a worker needs a shared database: name it with --database-url")
	}
	s = newServer(node.RoleWorker, config.Serve{Execute: worker.Execute, Endpoint: config.Endpoint{PublicURL: worker.PublicURL}}, log)
	data.Node = s.node
	defer func() {
		if err != nil {
			err = errors.Join(err, s.abortStart())
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
		watchers: run.NewWatchers(), counts: newRunCounts(), runChanges: pubsub.NewBroker(), eventChanges: pubsub.NewBroker(),
	}
}

// abortStart cleans up after a start that failed.
func (s *Server) abortStart() error {
	var err error
	if s.starts.path != "" {
		err = s.starts.undo()
	}
	return errors.Join(err, s.release())
}

// open opens the data. It locks a data directory for this process.
func (s *Server) open(ctx context.Context, data config.Data) (err error) {
	if !data.Shared() {
		if err := os.MkdirAll(data.Dir, 0o700); err != nil {
			return fmt.Errorf("create the data directory: %w", err)
		}
		if s.lock, err = lockDir(ctx, data.Dir); err != nil {
			return err
		}
		if s.starts, err = recordStart(data.Dir, s.config.LeaveSafeMode); err != nil {
			return err
		}
	}
	failpoint.Hit(failpoint.AtStart, "")
	options := sqlite.Options{Migrate: s.config.Migrate || !data.Shared(), UnsafeFilesystem: s.config.UnsafeFilesystem}
	if s.core, err = openCore(ctx, data, options, s.notify()); err != nil {
		return err
	}
	warnIfKeyIsExposed(data, s.log)
	if data.Shared() { // a rotation may be in progress: use the key that matches and leave the files alone
		return nil
	}
	return s.core.finishRotation(data)
}

// assemble builds the services on the store.
func (s *Server) assemble(ctx context.Context, data config.Data) (err error) {
	st, v := s.core.store, s.core.vault
	policy := egress.Policy{Allow: config.Prefixes(s.config.EgressAllow)}
	s.egress = egress.New(egress.Config{
		Policy: policy, UserAgent: "Stepmill/" + config.VersionText(), Own: s.ownAddresses,
	})
	if s.scripts, err = s.newSandbox(); err != nil {
		return err
	}
	actions, err := catalog.New(catalog.Deps{HTTP: s.egress, Runs: childStarter{s}, Scripts: s.scripts})
	if err != nil {
		return err
	}
	if s.triggerTypes == nil {
		if s.triggerTypes, err = triggers.New(); err != nil {
			return err
		}
	}
	types := s.triggerTypes
	cursors, err := paging.NewCodec(v.Derive("cursors"))
	if err != nil {
		return err
	}
	secrets := secret.NewService(st, v)
	links := run.NewLinks(st, v, s.publicURL)
	s.inbox = trigger.NewInbox(st)
	s.usage = usage.NewService(st)
	programs := workflow.NewPrograms(st, actions, types.Format())
	if data.Shared() {
		if s.cluster, err = s.newCluster(ctx, data); err != nil {
			return err
		}
		s.dispatch = s.cluster.dispatch
	} else {
		s.dispatch = local.New(st, s.node, engine.Slots, s.log)
	}
	s.runs = run.NewService(st, programs, s.watchers, s.dispatch, s.runChanges)
	s.engine = engine.New(st, s.dispatch, programs, secrets, links, v, s.node, s.log)
	if s.cluster != nil {
		s.engine.CheckLease(s.cluster.member.HoldsLease)
	}
	s.sender = webhook.NewSender(st, s.egress, v, s.log)
	workflows := workflow.NewService(st, actions, types.Format(), nameSource{secrets}, trigger.NewArming(types, v))
	s.firers = types.Firers(trigger.Deps{Store: st, Programs: programs, Runs: s.runs, Values: secrets, Actions: actions, Log: s.log})
	previews := run.NewPreviews(s.runs, secrets)
	provider, err := s.identityProvider()
	if err != nil {
		return err
	}
	s.api = api.New(api.Services{
		Auth: s.core.auth, Accounts: s.core.accounts, Actions: actions, Workflows: workflows, Runs: s.runs, Links: links, Audit: audit.NewService(st), Usage: s.usage,
		Triggers:    trigger.NewService(types, st, workflows, s.runs, v, s.inbox, s.publicURL),
		Hooks:       hooks.NewHooks(st, programs, s.runs, secrets, s.inbox),
		Webhooks:    webhook.NewService(st, v, policy, trigger.SampleEvent),
		Secrets:     secrets,
		Previews:    previews,
		StepTester:  run.NewStepTester(previews, programs, s.engine),
		Idempotency: idempotency.NewService(st, v),
		Events:      event.NewService(st, s.eventChanges),
		Nodes:       node.NewService(s.registry(), st, s.node),
	}, api.Options{
		Limits: s.limits(), Cursors: cursors, PreauthPerMinute: s.config.PreauthRPM, BodyBytes: bodyBytes(), TrustedProxies: config.Prefixes(s.config.TrustedProxy), Ready: s.ready, Log: s.log,
		StreamsPerWorkspace: s.config.StreamsPerWorkspace, PublicURL: s.publicURL, Origin: s.config.PublicURL.Origin(), Version: config.VersionText(), Dashboard: web.Dashboard(),
		OIDC: provider, OIDCRole: account.Role(s.config.OIDC.Role), StorageStalled: s.storageStalled(),
	})
	return nil
}

// publicURL returns the base URL of links to the service. A worker without a
// configured one uses that of a node that serves requests; it is empty if there
// is none.
func (s *Server) publicURL() string {
	switch {
	case s.listener != nil:
		return s.config.PublicURL.Or(s.listener.Addr())
	case s.config.PublicURL.IsSet():
		return s.config.PublicURL.Or(nil)
	default:
		return s.cluster.member.Others().URL
	}
}

// nameSource provides the names that expressions can refer to.
type nameSource struct{ secrets *secret.Service }

// Names implements workflow.NameSource.
func (n nameSource) Names(ctx context.Context, workspaceID string) (workflow.Names, error) {
	found, err := n.secrets.Names(ctx, workspaceID)
	return workflow.Names(found), err
}

// bodyBytes limits the total size of all request bodies in memory: a quarter of
// GOMEMLIMIT, if it is set.
func bodyBytes() int64 {
	const fallback = 512 << 20
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit / 4
	}
	return fallback
}

// notify returns the callbacks that the store calls after a commit. They are
// closures because the parts that they use are created after the store.
func (s *Server) notify() store.Notify {
	return store.Notify{
		Wake: func(w run.Wake) { s.dispatch.Wake(w) },
		AnswerArrived: func(runID string) {
			s.nudge(runID)
			s.notifyPeers(postgres.AnswerArrived, runID)
		},
		Changed: func(runID string) {
			s.runChanges.Publish(runID)
			s.notifyPeers(postgres.RunChanged, runID)
		},
		Recorded: func(workspaceID string) {
			s.eventChanges.Publish(workspaceID)
			s.notifyPeers(postgres.EventRecorded, workspaceID)
		},
		// The run is not queued for execution, so its reserved slot is free.
		HeldBack: func(runID string) { s.dispatch.Unreserve(runID) },
		Started: func(workspaceID string) {
			s.counts.started.Add(1)
			s.usage.Count(workspaceID, func(d *usage.Day) { d.RunsStarted++ })
		},
		Ended: func(e run.Completion) {
			s.watchers.Ended(e.RunID, e.Detail)
			s.runChanges.Publish(e.RunID)
			s.counts.ended.Add(string(e.Status))
			s.usage.Count(e.WorkspaceID, func(d *usage.Day) { countEnd(d, e.Status) })
			if e.Status == run.Cancelled {
				s.engine.Abort(e.RunID)
				s.notifyPeers(postgres.RunCancelled, e.RunID)
				return
			}
			s.notifyPeers(postgres.RunEnded, e.RunID)
		},
		Deliverable: func() {
			s.sender.Wake()
			s.notifyPeers(postgres.Deliverable, "")
		},
		EventPending: func(at time.Time) { s.firers.Wake(workflow.EventTrigger, at) },
		Scheduled: func(kind string, at time.Time) {
			s.firers.Wake(kind, at)
			s.notifyPeers(postgres.Scheduled, "")
		},
		WorkflowDeleted: func(workflowID string) {
			s.engine.AbortWorkflow(workflowID)
			s.runChanges.PublishAll() // subscribers to its runs find them deleted
			s.notifyPeers(postgres.WorkflowDeleted, workflowID)
		},
		WorkspaceCreated: s.shareCapacity,
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

// ready returns an error if the server cannot serve requests.
func (s *Server) ready(ctx context.Context) error {
	if s.stopping.Load() {
		return errors.New("the service is shutting down")
	}
	if s.cluster != nil && !s.cluster.member.HoldsLease() {
		return errors.New("the lease of this node has expired: its heartbeats do not reach the database")
	}
	if err := s.core.ping(ctx); err != nil {
		return errors.New("the database does not respond")
	}
	if s.core.lite != nil && s.core.lite.Busy() > maxCommit {
		return fmt.Errorf("the disk does not respond: a commit or a read has taken longer than %s", maxCommit)
	}
	if s.starts.safe {
		return errSafeMode
	}
	if s.awaitsSpace.Load() {
		return errAwaitsSpace
	}
	if s.engine.Stuck() >= maxStuck {
		return fmt.Errorf("%d actions are still running after their timeout: restart the service", maxStuck)
	}
	return nil
}

// maxCommit is how long a commit or a read may take before the service is no longer
// ready.
const maxCommit = 5 * time.Second

// storageStalled returns a function that reports whether the disk of the embedded
// database has stopped responding. It returns nil without a timeout, and for a
// shared database, which limits every call itself.
func (s *Server) storageStalled() func() bool {
	if s.core.lite == nil || s.config.DiskTimeout == 0 {
		return nil
	}
	limit := s.config.DiskTimeout - api.StallDelay
	return func() bool { return s.core.lite.Busy() > limit }
}

// maxStuck is how many actions may run past their timeout before the service is
// no longer ready.
const maxStuck = 100

// Address returns the address that the server listens on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// PrintWelcome prints the address of the service, on the first start the admin
// key, and a link for the first user while the first workspace has no owner.
func (s *Server) PrintWelcome(out io.Writer) {
	fmt.Fprintf(out, "Stepmill %s is ready at http://%s\n", config.VersionText(), s.Address())
	if s.firstKey != "" {
		fmt.Fprintf(out, "\nYour admin API key. It is shown only once, so store it safely:\n\n    %s\n\n", s.firstKey)
	}
	if s.welcomeLink != "" {
		fmt.Fprintf(out, "There is no owner yet. Create the first account here within 24 hours:\n\n    %s\n\n", s.welcomeLink)
	}
}
