package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"time"

	"github.com/stepmill/stepmill/internal/account"
	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/cluster"
	"github.com/stepmill/stepmill/internal/cluster/peer"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/counter"
	"github.com/stepmill/stepmill/internal/descriptor"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/node"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/ownintegration"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/state"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/trigger"
	triggers "github.com/stepmill/stepmill/internal/trigger/catalog"
	hooks "github.com/stepmill/stepmill/internal/trigger/webhook"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Server is a node: the service with its database. NewServer builds its parts, Run
// starts and stops them, and each part closes what it has opened.
type Server struct {
	config config.Serve
	log    *slog.Logger
	node   string // the id of this node
	role   string

	data        storage
	disk        disk
	files       *file.Service
	filesPlace  filesPlace
	runner      runner
	topology    cluster.Topology
	front       front
	housekeeper housekeeper
	changes     changes
	commands    commands
	welcome     welcome
}

// changes tells clients that wait for a run or follow a stream what has changed.
type changes struct {
	watchers *run.Watchers
	runs     *pubsub.Broker // by run id
	events   *pubsub.Broker // by workspace id
}

// welcome is what the operator is shown at the start.
type welcome struct {
	key  string // the admin key of a new installation
	link string // for the first user; empty when there is an owner
}

// Option changes how a server is assembled.
type Option func(*Server)

// WithPasswordCost hashes passwords at another cost than account.DefaultCost.
func WithPasswordCost(cost account.Cost) Option {
	return func(s *Server) { s.data.accounts = account.NewService(s.data.store.Accounts, account.WithCost(cost)) }
}

// NewServer opens the data and the listener. On a new installation it creates the
// first workspace.
func NewServer(ctx context.Context, data config.Data, serve config.Serve, log *slog.Logger, options ...Option) (s *Server, err error) {
	if serve.DiskTimeout != 0 && serve.DiskTimeout <= transport.StallDelay {
		return nil, fmt.Errorf("--disk-timeout must be more than %s, or 0s for no limit", transport.StallDelay)
	}
	s = newServer(node.RoleServe, serve, log)
	data.Node = s.node
	defer func() {
		if err != nil {
			err = errors.Join(err, s.abortStart())
		}
	}()
	if err := s.data.open(ctx, data, s.config, s.notify(), s.log); err != nil {
		return s, err
	}
	s.data.db.openDisk(ctx, &s.disk, s.config.DiskReserve)
	for _, apply := range options {
		apply(s)
	}
	// Listen before joining the cluster: the addresses are announced to other nodes.
	if err := s.front.listen(ctx, s.metricSources()...); err != nil {
		return s, err
	}
	if err := s.assemble(ctx, data); err != nil {
		return s, err
	}
	// Bootstrap comes last: the first key is shown only once, so the start must not
	// fail after it.
	if s.welcome.key, err = s.data.auth.Bootstrap(ctx); err != nil {
		return s, fmt.Errorf("set up the first workspace: %w", err)
	}
	s.welcome.link, err = s.data.accounts.WelcomeLink(ctx, s.publicURL(), nil)
	if fault.Is(err, fault.StorageFull) {
		s.log.Warn("cannot create the link for the first user; free some space and restart", "error", err)
	} else if err != nil {
		return s, fmt.Errorf("create the link for the first user: %w", err)
	}
	s.listenForCommands(ctx, locate(data).commandDir())
	return s, nil
}

// NewWorker opens the data of a node that executes runs and serves no requests.
func NewWorker(ctx context.Context, data config.Data, worker config.Worker, log *slog.Logger) (s *Server, err error) {
	if err := locate(data).needShared(); err != nil {
		return nil, err
	}
	s = newServer(node.RoleWorker, config.Serve{Execute: worker.Execute, Endpoint: config.Endpoint{PublicURL: worker.PublicURL}}, log)
	data.Node = s.node
	defer func() {
		if err != nil {
			err = errors.Join(err, s.abortStart())
		}
	}()
	if err := s.data.open(ctx, data, s.config, s.notify(), s.log); err != nil {
		return s, err
	}
	if err := s.front.listenForMetrics(ctx, s.metricSources()...); err != nil {
		return s, err
	}
	err = s.assemble(ctx, data)
	return s, err
}

func newServer(role string, serve config.Serve, log *slog.Logger) *Server {
	s := &Server{
		config: serve, log: log, node: uid.New(uid.Node), role: role,
		front:   front{config: serve, log: log},
		changes: changes{watchers: run.NewWatchers(), runs: pubsub.NewBroker(), events: pubsub.NewBroker()},
	}
	s.runner.data, s.runner.log = &s.data, log
	s.runner.counts = &runCounts{ended: counter.NewSet(string(run.Succeeded), string(run.Failed), string(run.Cancelled))}
	s.disk.log, s.disk.awaitsSpace = log, s.runner.awaitsSpace.Load
	return s
}

// abortStart cleans up after a start that failed.
func (s *Server) abortStart() error { return errors.Join(s.data.undoStart(), s.close()) }

func (s *Server) assemble(ctx context.Context, data config.Data) (err error) {
	st, v := s.data.store, s.data.vault
	policy := egress.Policy{Allow: config.Prefixes(s.config.EgressAllow)}
	if err := s.openResources(ctx, data, policy); err != nil {
		return err
	}
	actions, operations, err := s.newActions()
	if err != nil {
		return err
	}
	types, err := s.triggerTypes(operations)
	if err != nil {
		return err
	}
	secrets := secret.NewService(st.Secrets, v)
	integrations := ownintegration.NewService(st.OwnIntegrations)
	connections, err := s.newConnections(integrations)
	if err != nil {
		return err
	}
	links := run.NewLinks(st.Runs, v, s.publicURL)
	s.housekeeper = housekeeper{
		data: &s.data, runner: &s.runner, keepRuns: s.config.KeepRuns, log: s.log,
		usage: usage.NewService(st.Usage), inbox: trigger.NewInbox(st.Triggers), connections: connections, files: s.files,
	}
	programs := workflow.NewPrograms(st.Workflows, actions, types.Format())
	if s.topology, err = s.data.db.join(ctx, s.clusterConfig(), s.config.NodeLease, s.filesPlace); err != nil {
		return err
	}
	s.runner.dispatch, s.housekeeper.topology = s.topology.Dispatcher(), s.topology
	s.runner.runs = run.NewService(st.Runs, programs, s.changes.watchers, s.runner.dispatch, s.changes.runs)
	s.runner.runs.QueuedInMemory(s.runner.dispatch.Queued)
	s.runner.runs.AdmitStarts(s.disk.admitRun)
	s.runner.engine = engine.New(engine.Config{Node: s.node, Store: st.Leases, Source: s.runner.dispatch, Programs: programs, Values: secrets, Links: links, Connections: connections.Opener, Vault: v, Files: s.files, HoldsLease: s.topology.HoldsLease, Log: s.log})
	s.runner.sender = webhook.NewSender(s.topology.Outbox(), s.runner.egress, v, s.log)
	workflows := workflow.NewService(st.Workflows, actions, types.Format(), nameSource{secrets, st.Connections}, trigger.NewArming(types, v))
	s.data.db.checkNodes(workflows)
	own := ownSource{integrations, st, operations, actions, types.Format()}
	operations.UseOwn(integrations)
	programs.UseOwn(own)
	workflows.UseOwn(own)
	s.runner.firers = types.Firers(trigger.Deps{Store: st.Triggers, Programs: programs, Runs: s.runner.runs, Values: secrets, Connections: connections.Opener, Actions: actions, Log: s.log})
	subscriptions := subscription.Deps{
		Store: st.Subscriptions, Vault: v, Operations: operations, Connections: connections.Opener, Apps: connections.Apps, Programs: programs, Triggers: st.Triggers, Values: secrets, Node: s.node, BaseURL: s.publicURL, Log: s.log,
	}
	serviceCalls := subscription.NewCalls(st.Subscriptions, subscriptions, s.runner.runs, s.housekeeper.inbox)
	s.runner.subscriptions, s.runner.appCalls = subscription.NewReconciler(subscriptions), subscription.NewFanout(serviceCalls, s.log)
	previews := run.NewPreviews(s.runner.runs, secrets)
	options, err := s.apiOptions()
	if err != nil {
		return err
	}
	s.front.api = api.New(api.Services{
		Auth: s.data.auth, Accounts: s.data.accounts, Actions: actions, Workflows: workflows, Runs: s.runner.runs, Links: links, Audit: audit.NewService(st.Audit), Usage: s.housekeeper.usage,
		Triggers:      trigger.NewService(types, st.Triggers, workflows, s.runner.runs, v, s.housekeeper.inbox, s.publicURL),
		Hooks:         hooks.NewHooks(st.Triggers, programs, s.runner.runs, secrets, s.housekeeper.inbox, s.files),
		Subscriptions: subscription.NewService(subscriptions), ServiceCalls: serviceCalls,
		Webhooks:    webhook.NewService(st.Webhooks, v, policy),
		Secrets:     secrets,
		Connections: connections, Integrations: integrations,
		Lists:  operation.NewLists(operations, connections.Opener),
		Tables: table.NewService(st.Tables), State: state.NewService(st.State), Files: s.files,
		Previews:    previews,
		StepTester:  run.NewStepTester(previews, programs, s.runner.engine),
		Idempotency: idempotency.NewService(st.Idempotency, v),
		Events:      event.NewService(st.Events, s.changes.events),
		Nodes:       node.NewService(s.topology, st.Runs, s.node),
	}, options)
	return nil
}

// openResources opens what steps use: outbound requests, script processes and files.
func (s *Server) openResources(ctx context.Context, data config.Data, policy egress.Policy) (err error) {
	s.runner.egress = egress.New(egress.Config{
		Policy: policy, UserAgent: "Stepmill/" + config.VersionText(), Own: s.ownAddresses, Proxy: s.config.EgressProxy.URL(),
	})
	if s.runner.scripts, err = s.newSandbox(); err != nil {
		return err
	}
	s.files, err = s.newFiles(ctx, data)
	return err
}

// newActions builds the catalog of actions, and the operations of integrations in it.
func (s *Server) newActions() (*action.Catalog, *operation.Actions, error) {
	integrations, err := integration.Builtin()
	if err != nil {
		return nil, nil, err
	}
	operations := operation.NewActions(integrations, s.runner.egress)
	actions, err := catalog.New(catalog.Deps{
		HTTP: s.runner.egress, Runs: childStarter{s}, Scripts: s.runner.scripts, Tables: s.data.store.Tables, Keys: s.data.store.State, Operations: operations,
	})
	return actions, operations, err
}

// triggerTypes returns the types of triggers: those of the catalog, unless others are set.
func (s *Server) triggerTypes(operations *operation.Actions) (types *trigger.Types, err error) {
	if s.runner.triggers == nil {
		s.runner.triggers, err = triggers.New(operations)
	}
	return s.runner.triggers, err
}

// newConnections builds the services on connections, with the integrations that are part
// of the product and those that workspaces have described themselves.
func (s *Server) newConnections(own *ownintegration.Service) (connection.Services, error) {
	builtin, err := integration.Builtin()
	if err != nil {
		return connection.Services{}, err
	}
	connections := connection.NewServices(connection.Deps{
		Store: s.data.store.Connections, Vault: s.data.vault, Client: s.runner.egress, Catalog: builtin, Own: own, Node: s.node, Log: s.log,
	})
	if file := s.config.OAuthAppsFile; file != "" {
		apps, err := os.ReadFile(file)
		if err == nil {
			err = connections.Apps.AddFromFile(apps)
		}
		if err != nil {
			return connection.Services{}, fmt.Errorf("--oauth-apps-file: %w", err)
		}
	}
	return connections, nil
}

// publicURL returns the base URL of links to the service. A worker without a
// configured one uses that of a node that serves requests; it is empty if there
// is none.
func (s *Server) publicURL() string {
	switch {
	case s.front.listener != nil:
		return s.config.PublicURL.Or(s.front.listener.Addr())
	case s.config.PublicURL.IsSet():
		return s.config.PublicURL.Or(nil)
	default:
		return s.topology.Others().URL
	}
}

// nameSource provides the names that definitions can refer to.
type nameSource struct {
	secrets     *secret.Service
	connections interface {
		ConnectionNames(ctx context.Context, workspaceID string) ([]connection.Name, error)
	}
}

// Names implements workflow.NameSource.
func (n nameSource) Names(ctx context.Context, actor auth.Actor) (workflow.Names, error) {
	values, err := n.secrets.Names(ctx, actor.Workspace.ID)
	if err != nil {
		return workflow.Names{}, err
	}
	names := workflow.Names{Secrets: values.Secrets, Variables: values.Variables}
	connections, err := n.connections.ConnectionNames(ctx, actor.Workspace.ID)
	for _, c := range connections {
		names.Connections = append(names.Connections, workflow.ConnectionName{Name: c.Name, Now: c.Now, Integration: c.Integration, Closed: !c.MayUse(actor)})
	}
	return names, err
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
		Wake:          func(w run.Wake) { s.runner.dispatch.Wake(w) },
		AnswerArrived: func(runID string) { s.announce(peer.AnswerArrived, runID) },
		Changed:       func(runID string) { s.announce(peer.RunChanged, runID) },
		Recorded:      func(workspaceID string) { s.announce(peer.EventRecorded, workspaceID) },
		// The run is not queued for execution, so its reserved slot is free.
		HeldBack: func(runID string) { s.runner.dispatch.Unreserve(runID) },
		Started: func(workspaceID string) {
			s.runner.counts.started.Add(1)
			s.housekeeper.usage.Count(workspaceID, func(d *usage.Day) { d.RunsStarted++ })
		},
		Ended: func(e run.Completion) {
			s.changes.watchers.Ended(e.RunID, e.Detail)
			s.changes.runs.Publish(e.RunID)
			s.runner.counts.ended.Add(string(e.Status))
			s.housekeeper.usage.Count(e.WorkspaceID, func(d *usage.Day) { countEnd(d, e.Status) })
			if e.Status == run.Cancelled {
				s.runner.engine.Abort(e.RunID)
				s.topology.Publish(peer.RunCancelled, e.RunID)
				return
			}
			s.topology.Publish(peer.RunEnded, e.RunID)
		},
		Deliverable:  func() { s.announce(peer.Deliverable, "") },
		EventPending: func(at time.Time) { s.runner.firers.Wake(workflow.EventTrigger, at) },
		Scheduled: func(kind string, at time.Time) {
			s.runner.firers.Wake(kind, at)
			s.topology.Publish(peer.Scheduled, "")
		},
		SubscriptionDue: func(at time.Time) {
			s.runner.subscriptions.Wake(at)
			s.topology.Publish(peer.Scheduled, "")
		},
		AppCalled:        func(at time.Time) { s.runner.appCalls.Wake(at) },
		WorkflowDeleted:  func(workflowID string) { s.announce(peer.WorkflowDeleted, workflowID) },
		WorkspaceCreated: s.runner.shareCapacity,
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
	if s.front.stopping.Load() {
		return errors.New("the service is shutting down")
	}
	if !s.topology.HoldsLease() {
		return errors.New("the lease of this node has expired: its heartbeats do not reach the database")
	}
	if err := s.data.db.ping(ctx, s.data.store); err != nil {
		return errors.New("the database does not respond")
	}
	if stalled := s.data.db.stalled(maxCommit); stalled != nil && stalled() {
		return fmt.Errorf("the disk does not respond: a commit or a read has taken longer than %s", maxCommit)
	}
	if s.front.listener != nil && s.front.listener.IsShort() {
		return fmt.Errorf("the process has too few file descriptors: raise its limit of %d", descriptor.Limit())
	}
	if s.data.starts.safe {
		return errSafeMode
	}
	if s.runner.engine.Stuck() >= maxStuck {
		return fmt.Errorf("%d actions are still running after their timeout: restart the service", maxStuck)
	}
	return nil
}

// maxCommit is how long a commit or a read may take before the service is no longer ready: a flush
// that hangs cannot be cancelled, so that only /readyz can keep requests away.
const maxCommit = 5 * time.Second

// storageStalled returns a function that reports whether the disk of the embedded
// database has stopped responding. It returns nil if nothing needs to watch it.
func (s *Server) storageStalled() func() bool {
	if s.config.DiskTimeout == 0 {
		return nil
	}
	return s.data.db.stalled(s.config.DiskTimeout - transport.StallDelay)
}

// maxStuck is how many actions may run past their timeout before the service is
// no longer ready.
const maxStuck = 100

// Address returns the address that the server listens on.
func (s *Server) Address() string { return s.front.listener.Addr().String() }

// PrintWelcome prints the address of the service, on the first start the admin
// key, and a link for the first user while the first workspace has no owner.
func (s *Server) PrintWelcome(out io.Writer) {
	fmt.Fprintf(out, "Stepmill %s is ready at http://%s\n", config.VersionText(), s.Address())
	if s.welcome.key != "" {
		fmt.Fprintf(out, "\nYour admin API key. It is shown only once, so store it safely:\n\n    %s\n\n", s.welcome.key)
	}
	if s.welcome.link != "" {
		fmt.Fprintf(out, "There is no owner yet. Create the first account here within 24 hours:\n\n    %s\n\n", s.welcome.link)
	}
}
