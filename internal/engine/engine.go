// Package engine executes runs: it decides which steps follow from the results so
// far, executes actions, and commits each decision atomically under the lease of the
// run. All state that matters is in the store, so any node can continue a run from
// its last commit.
package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/dispatch"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Store stores runs for the engine. Each method is one transaction.
type Store interface {
	Activate(ctx context.Context, wake run.Wake, node string) (run.Lease, bool, error)
	Snapshot(ctx context.Context, runID string) (*run.Snapshot, error)
	// Answers reads the answers to the open steps of a run, by step path.
	Answers(ctx context.Context, runID string) (map[string]run.StepAnswer, error)
	Commit(ctx context.Context, lease run.Lease, of run.Run, d run.Decision) (run.Committed, error)
	// Perform performs the operation of a step test and returns its answer.
	Perform(ctx context.Context, op action.Operation) (run.StepAnswer, error)
}

const (
	// Slots is the number of runs that are executed at the same time.
	Slots = 256
	// drainTime is how long steps in flight may continue during a shutdown.
	drainTime = 25 * time.Second
	// maskMemory limits the memory for maskers of secrets.
	maskMemory = 16 << 20
)

// Engine executes runs.
type Engine struct {
	store       Store
	source      dispatch.Source
	node        string
	programs    *workflow.Programs
	values      Values
	links       Links
	vault       Vault
	connections Connections
	files       Files
	masks       *mask.Cache
	log         *slog.Logger

	// holdsLease reports whether this node still owns its runs.
	holdsLease func() bool

	mu     sync.Mutex
	active map[string]*driver

	stuck  atomic.Int64
	counts *counts
}

// Stuck returns the number of actions that are still running after their timeout.
func (e *Engine) Stuck() int { return int(e.stuck.Load()) }

// Config is what an engine works with.
type Config struct {
	Node        string // on whose behalf runs are executed
	Store       Store
	Source      dispatch.Source // of the runs to execute
	Programs    *workflow.Programs
	Values      Values
	Links       Links
	Connections Connections
	Vault       Vault
	Files       Files
	// HoldsLease reports whether this node still owns its runs. The engine checks that
	// before it starts steps with effects.
	HoldsLease func() bool
	Log        *slog.Logger
}

// New returns an engine.
func New(config Config) *Engine {
	return &Engine{
		store: config.Store, source: config.Source, node: config.Node, log: config.Log, programs: config.Programs, values: config.Values,
		links: config.Links, connections: config.Connections, vault: config.Vault, files: config.Files, masks: mask.NewCache(maskMemory), active: map[string]*driver{},
		holdsLease: config.HoldsLease, counts: newCounts(config.Programs.Catalog()),
	}
}

// Run executes runs until the context ends. Then it starts no more runs and returns
// when every run in flight has reached a checkpoint.
func (e *Engine) Run(ctx context.Context) error {
	free := make(chan struct{}, Slots)
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		wake, err := e.source.Next(ctx)
		if err != nil {
			return nil
		}
		running.Go(func() {
			defer func() { <-free }()
			defer e.source.Done(wake)
			e.process(ctx, wake)
		})
	}
}

// process executes a run until it ends, waits or is taken over by another node.
func (e *Engine) process(stop context.Context, wake run.Wake) {
	for again := true; again; {
		wake, again = e.processOnce(stop, wake)
	}
}

// processOnce executes a run once. It returns true if the run has to be read again,
// with the wake-up for it.
func (e *Engine) processOnce(stop context.Context, wake run.Wake) (run.Wake, bool) {
	// During a shutdown, runs continue to their next checkpoint, so their writes must
	// not depend on the stop context.
	ctx, abort := context.WithCancel(context.WithoutCancel(stop))
	defer abort()
	d := newDriver(e, e.log.With("run_id", wake.RunID))
	d.stop, d.abort, d.unregistered, d.nudges = stop, abort, make(chan struct{}), make(chan struct{}, 1)
	d.workflowID, d.fresh, d.changes.crashes = wake.WorkflowID, wake.Fresh, wake.Crashes
	e.register(wake.RunID, d)
	defer e.unregister(wake.RunID, d)
	lease, ok := e.acquireLease(ctx, d, wake)
	if !ok {
		return wake, false
	}
	d.lease = lease
	d.epoch.Store(lease.Epoch)
	failpoint.Hit(failpoint.AfterClaim, wake.RunID)
	defer d.dropFiles()
	defer d.recoverPanic(ctx)
	switch {
	case !d.load(ctx):
	case wake.Quarantined():
		d.quarantine(ctx)
	default:
		d.drive(ctx)
	}
	wake.Owned, wake.Epoch, wake.Fresh = true, lease.Epoch, nil
	return wake, d.stale
}

// acquireLease makes this node the owner of the run. It retries while the store
// fails, because no other node would find a run that was orphaned by a crash.
func (e *Engine) acquireLease(ctx context.Context, d *driver, wake run.Wake) (run.Lease, bool) {
	if wake.Owned {
		return run.Lease{RunID: wake.RunID, Epoch: wake.Epoch}, true
	}
	var lease run.Lease
	held := false
	done := d.retryStore(ctx, "acquire the lease of a run", func() (err error) {
		lease, held, err = e.store.Activate(ctx, wake, e.node)
		return err
	})
	return lease, done && held
}

// register makes the driver the only one of the run in this process. It waits for a
// previous driver that has released the run but not returned yet.
func (e *Engine) register(runID string, d *driver) {
	for {
		e.mu.Lock()
		other := e.active[runID]
		if other == nil {
			e.active[runID] = d
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		<-other.unregistered
	}
}

func (e *Engine) unregister(runID string, d *driver) {
	e.mu.Lock()
	delete(e.active, runID)
	e.mu.Unlock()
	close(d.unregistered)
}

// Abort stops executing a run whose lease is no longer valid.
func (e *Engine) Abort(runID string) {
	e.abort(func(id string, _ *driver) bool { return id == runID })
}

// AbortLease stops executing a run under the given lease.
func (e *Engine) AbortLease(lease run.Lease) {
	e.abort(func(id string, d *driver) bool { return id == lease.RunID && d.epoch.Load() == lease.Epoch })
}

// AbortWorkflow stops executing all runs of a workflow.
func (e *Engine) AbortWorkflow(workflowID string) {
	e.abort(func(_ string, d *driver) bool { return d.workflowID == workflowID })
}

// AbortAll stops executing all runs.
func (e *Engine) AbortAll() { e.abort(func(string, *driver) bool { return true }) }

func (e *Engine) abort(which func(string, *driver) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, d := range e.active {
		if which(id, d) {
			d.abort()
		}
	}
}

// IsActive reports whether this engine is executing a run.
func (e *Engine) IsActive(runID string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.active[runID] != nil
}

// Leases returns the leases of the runs that are being executed. The epoch is zero
// while a lease is being acquired.
func (e *Engine) Leases() []run.Lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	leases := make([]run.Lease, 0, len(e.active))
	for id, d := range e.active {
		leases = append(leases, run.Lease{RunID: id, Epoch: d.epoch.Load()})
	}
	return leases
}

// Nudge makes the driver of a run, if any, check the store for answers.
func (e *Engine) Nudge(runID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := e.active[runID]; d != nil {
		d.nudge()
	}
}
