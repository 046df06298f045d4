package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/action/catalog"
	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/dispatch/local"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/idempotency"
	"github.com/stepmill/stepmill/internal/news"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/sandbox"
	"github.com/stepmill/stepmill/internal/secret"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/store/sqlite"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/usage"
	"github.com/stepmill/stepmill/internal/webhook"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Server is the whole service on the embedded database.
type Server struct {
	config   config.Serve
	log      *slog.Logger
	core     *core
	lock     *os.File
	node     string
	listener net.Listener
	outside  *egress.Client
	scripts  *sandbox.Pool
	api      *api.Server
	runs     *run.Service
	usage    *usage.Service
	inbox    *trigger.Inbox
	engine   *engine.Engine
	courier  *webhook.Courier
	schedule *trigger.Scheduler
	respond  *trigger.Responder
	poll     *trigger.Poller
	dispatch *local.Dispatcher
	watchers *run.Watchers
	starts   *starts
	runNews  *news.Hub // by the ids of runs
	written  *news.Hub // events, by the ids of workspaces
	stopping atomic.Bool
	firstKey string
}

// NewServer opens the data and the listener. On a new installation it makes the
// first workspace.
func NewServer(ctx context.Context, data config.Data, serve config.Serve, log *slog.Logger) (s *Server, err error) {
	if err := os.MkdirAll(data.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	s = &Server{config: serve, log: log, node: uid.New(uid.Node), watchers: run.NewWatchers(), runNews: news.NewHub(), written: news.NewHub()}
	defer func() {
		if err == nil {
			return
		}
		if s.starts != nil {
			err = errors.Join(err, s.starts.gaveUp())
		}
		err = errors.Join(err, s.release())
	}()
	if s.lock, err = lockDir(data.Dir); err != nil {
		return s, err
	}
	if s.starts, err = countStart(data.Dir, serve.LeaveSafeMode); err != nil {
		return s, err
	}
	failpoint.Hit(failpoint.AtStart, "")
	options := sqlite.Options{Migrate: true, UnsafeFilesystem: serve.UnsafeFilesystem}
	if s.core, err = openCore(ctx, data, options, s.notify()); err != nil {
		return s, err
	}
	if err := s.core.settleMasterKey(data); err != nil {
		return s, err
	}
	if err := s.assemble(); err != nil {
		return s, err
	}
	if s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", serve.Listen); err != nil {
		return s, fmt.Errorf("listen on %s: %w", serve.Listen, err)
	}
	// Last of all: the first key is shown once, by a server that does start.
	if s.firstKey, err = s.core.auth.Bootstrap(ctx); err != nil {
		return s, fmt.Errorf("set up the first workspace: %w", err)
	}
	return s, nil
}

// assemble builds the services on the store.
func (s *Server) assemble() (err error) {
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
	base := func() string { return s.config.PublicURL.Or(s.listener.Addr()) }
	links := run.NewLinks(st, v, base)
	s.inbox = trigger.NewInbox(st)
	s.usage = usage.NewService(st)
	plans := workflow.NewPlans(st, actions)
	s.dispatch = local.New(st, s.node, s.log)
	s.runs = run.NewService(st, plans, s.watchers, s.dispatch, s.runNews, s.node)
	s.engine = engine.New(st, s.dispatch, plans, secrets, links, s.node, s.log)
	s.courier = webhook.NewCourier(st, s.outside, v, s.log)
	flows := workflow.NewService(st, actions, names{secrets}, trigger.NewArming(v))
	s.schedule = trigger.NewScheduler(st, plans, s.runs, s.log)
	s.respond = trigger.NewResponder(st, s.runs, s.log)
	s.poll = trigger.NewPoller(st, plans, s.runs, secrets, actions, s.log)
	previews := run.NewPreviews(s.runs, secrets)
	s.api = api.New(api.Services{
		Auth: s.core.auth, Actions: actions, Workflows: flows, Runs: s.runs, Links: links, Audit: audit.NewService(st), Usage: s.usage,
		Triggers:    trigger.NewService(st, flows, s.runs, v, actions, s.inbox, base),
		Hooks:       trigger.NewHooks(st, plans, s.runs, secrets, s.inbox),
		Webhooks:    webhook.NewService(st, v, policy, trigger.SampleEvent),
		Secrets:     secrets,
		Previews:    previews,
		Trials:      run.NewTrials(previews, plans, s.engine),
		Idempotency: idempotency.NewService(st, v),
		Events:      event.NewService(st, s.written),
	}, api.Options{
		Cursors: cursors, PreauthPerMinute: s.config.PreauthRPM, BodyBytes: bodyBytes(), TrustedProxies: config.Prefixes(s.config.TrustedProxy), Ready: s.ready, Log: s.log,
		StreamsPerWorkspace: s.config.StreamsPerWorkspace,
	})
	return nil
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

// own are the addresses that no step may reach: the service's own.
func (s *Server) own() []netip.AddrPort {
	if at, err := netip.ParseAddrPort(s.listener.Addr().String()); err == nil {
		return []netip.AddrPort{at}
	}
	return nil
}

// notify connects what the store tells after a commit with those who wait for
// it. The parts are made after the store, hence the functions.
func (s *Server) notify() store.Notify {
	return store.Notify{
		Wake:     func(w run.Wake) { s.dispatch.Wake(w) },
		Stirred:  func(runID string) { s.engine.Stir(runID) },
		Changed:  func(runID string) { s.runNews.Tell(runID) },
		Recorded: func(workspaceID string) { s.written.Tell(workspaceID) },
		// It is not queued to be executed: the place that was kept for it is free.
		HeldBack: func(runID string) { s.dispatch.Unreserve(runID) },
		Started:  func(workspaceID string) { s.usage.Count(workspaceID, func(d *usage.Day) { d.RunsStarted++ }) },
		Ended: func(workspaceID, runID string, status run.Status) {
			s.watchers.Ended(runID)
			s.runNews.Tell(runID)
			s.usage.Count(workspaceID, func(d *usage.Day) { countEnd(d, status) })
			if status == run.Cancelled {
				s.engine.Abort(runID)
			}
		},
		Deliverable: func() { s.courier.Wake() },
		Occasion:    func(at time.Time) { s.respond.Wake(at) },
		Scheduled:   func(kind string, at time.Time) { s.scheduled(kind, at) },
		WorkflowDeleted: func(workflowID string) {
			s.engine.AbortWorkflow(workflowID)
			s.runNews.TellAll() // those who follow its runs find them gone
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
	if _, err := s.core.store.KeyCheck(ctx); err != nil {
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

// Greet tells a person where the service is and, once, the first key.
func (s *Server) Greet(out io.Writer) {
	fmt.Fprintf(out, "Stepmill %s is ready at http://%s\n", config.VersionText(), s.Address())
	if s.firstKey != "" {
		fmt.Fprintf(out, "\nYour admin API key. It is shown this once, keep it safe:\n\n    %s\n\n", s.firstKey)
	}
}

const shutdownTime = 25 * time.Second

// Run serves until the context ends, then lets everything under way come to a
// good end: first requests, then runs, last the store.
func (s *Server) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.release()) }()
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	parts := newGroup(stopWork)
	if s.starts.safe {
		s.log.Warn("runs are not executed", "error", errSafeMode)
	} else {
		if err := s.dispatch.Recover(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("take up the runs of the last process: %w", err)
		}
		// From here on a run that ends the process is blamed for it.
		if err := s.starts.ready(); err != nil {
			s.log.Warn("cannot note that the service is ready", "error", err)
		}
		parts.start(func() error { return s.dispatch.Run(work) })
		parts.start(func() error { return s.engine.Run(work) })
		parts.start(func() error { return s.courier.Run(work) })
		parts.start(func() error { return s.schedule.Run(work) })
		parts.start(func() error { return s.respond.Run(work) })
		parts.start(func() error { return s.poll.Run(work) })
	}
	parts.start(func() error { return s.housekeep(work) })
	parts.start(func() error { return s.sweep(work) })

	server := s.api.HTTP()
	serving := make(chan error, 1)
	go func() {
		serving <- server.Serve(api.LimitConns(s.listener, s.config.ConnsPerAddress, config.Prefixes(s.config.TrustedProxy)))
	}()
	select {
	case <-ctx.Done():
		err = s.stopServing(ctx, server)
	case err = <-serving:
	case <-work.Done(): // a part gave up
	case <-s.core.ended: // the disk failed: nothing may be acknowledged any more
		_ = server.Close()
	}
	stopWork()
	return errors.Join(err, parts.wait())
}

func (s *Server) stopServing(ctx context.Context, server *http.Server) error {
	s.log.Info("stopping")
	s.stopping.Store(true)
	s.runs.Close()
	time.Sleep(s.config.DrainDelay)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		s.log.Warn("some requests did not end in time", "error", err)
		return server.Close()
	}
	return nil
}

// release gives back what NewServer took.
func (s *Server) release() error {
	var errs []error
	if s.listener != nil {
		if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.outside != nil {
		s.outside.Close()
	}
	if s.scripts != nil {
		s.scripts.Close()
	}
	if s.core != nil {
		errs = append(errs, s.core.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
