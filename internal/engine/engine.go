// Package engine moves runs forward: it decides what follows from the results
// so far (pure), executes actions, and commits each decision as a whole under
// the run's lease. It holds no state that matters: all of it is in the store,
// and a run goes on from its last commit wherever it is taken up.
package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/dispatch"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Store keeps runs for the engine. A method is one atomic unit.
type Store interface {
	Activate(ctx context.Context, wake run.Wake, node string) (run.Lease, bool, error)
	Snapshot(ctx context.Context, runID string) (*run.Snapshot, error)
	// Answers reads what has come for the open steps of a run, by their paths.
	Answers(ctx context.Context, runID string) (map[string]json.RawMessage, error)
	Commit(ctx context.Context, lease run.Lease, of run.Run, d run.Decision) (held bool, err error)
}

const (
	// Slots is how many runs are moved forward at the same time.
	Slots = 256
	// drainTime is how long steps under way may go on after a stop was asked.
	drainTime = 25 * time.Second
)

// Engine executes runs.
type Engine struct {
	store  Store
	source dispatch.Source
	node   string
	plans  *workflow.Plans
	values Values
	links  Links
	log    *slog.Logger

	// trusted tells whether the runs of this node are still its own.
	trusted func() bool

	mu     sync.Mutex
	active map[string]*driver

	stuck  atomic.Int64
	counts *counts
}

// Stuck is the number of actions that went on after their time and were left to
// themselves.
func (e *Engine) Stuck() int { return int(e.stuck.Load()) }

// New makes an engine that takes runs from a source on behalf of a node.
func New(store Store, source dispatch.Source, plans *workflow.Plans, values Values, links Links, node string, log *slog.Logger) *Engine {
	return &Engine{
		store: store, source: source, node: node, log: log, plans: plans, values: values, links: links, active: map[string]*driver{},
		trusted: func() bool { return true }, counts: newCounts(plans.Catalog()),
	}
}

// Trust makes the engine ask, before each effect, whether the runs of this node
// are still its own.
func (e *Engine) Trust(trusted func() bool) { e.trusted = trusted }

// Run executes runs until the context ends. Then it takes up nothing new and
// returns when every run has reached a checkpoint.
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
			e.take(ctx, wake)
		})
	}
}

// take moves one run forward until it is finished, waits or is taken away.
func (e *Engine) take(stop context.Context, wake run.Wake) {
	for again := true; again; {
		wake, again = e.attend(stop, wake)
	}
}

// attend works on a run once. It answers true when the run has to be read anew,
// with the wake-up to do so.
func (e *Engine) attend(stop context.Context, wake run.Wake) (run.Wake, bool) {
	// Once taken up, a run goes on to its next checkpoint even when the engine
	// stops: its writes must not depend on the context that says stop.
	ctx, abort := context.WithCancel(context.WithoutCancel(stop))
	defer abort()
	d := &driver{
		engine: e, stop: stop, abort: abort, left: make(chan struct{}), news: make(chan struct{}, 1), fresh: wake.Fresh,
		workflowID: wake.WorkflowID, crashes: wake.Crashes, log: e.log.With("run_id", wake.RunID),
	}
	e.enter(wake.RunID, d)
	defer e.leave(wake.RunID, d)
	lease, ok := e.lease(ctx, d, wake)
	if !ok {
		return wake, false
	}
	d.lease = lease
	d.epoch.Store(lease.Epoch)
	failpoint.Hit(failpoint.AfterClaim, wake.RunID)
	defer d.survive(ctx)
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

// lease makes this node the owner of the run. A store that does not answer is
// asked again: nobody else would find a run that a process left when it died.
func (e *Engine) lease(ctx context.Context, d *driver, wake run.Wake) (run.Lease, bool) {
	if wake.Owned {
		return run.Lease{RunID: wake.RunID, Epoch: wake.Epoch}, true
	}
	var lease run.Lease
	held := false
	done := d.insist(ctx, "take up a run", func() (err error) {
		lease, held, err = e.store.Activate(ctx, wake, e.node)
		return err
	})
	return lease, done && held
}

// enter makes the driver the only one that works on the run in this process.
// One that has just let go of the run may still be on its way out.
func (e *Engine) enter(runID string, d *driver) {
	for {
		e.mu.Lock()
		other := e.active[runID]
		if other == nil {
			e.active[runID] = d
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		<-other.left
	}
}

func (e *Engine) leave(runID string, d *driver) {
	e.mu.Lock()
	delete(e.active, runID)
	e.mu.Unlock()
	close(d.left)
}

// Abort stops working on a run whose lease is void.
func (e *Engine) Abort(runID string) {
	e.abort(func(id string, _ *driver) bool { return id == runID })
}

// AbortLease stops working on a run under that lease.
func (e *Engine) AbortLease(lease run.Lease) {
	e.abort(func(id string, d *driver) bool { return id == lease.RunID && d.epoch.Load() == lease.Epoch })
}

// AbortWorkflow stops working on every run of a workflow.
func (e *Engine) AbortWorkflow(workflowID string) {
	e.abort(func(_ string, d *driver) bool { return d.workflowID == workflowID })
}

// AbortAll stops working on every run.
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

// Works tells whether a run is worked on here.
func (e *Engine) Works(runID string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.active[runID] != nil
}

// Leases are those that runs are worked on under. The epoch of one that is just
// being taken up is zero.
func (e *Engine) Leases() []run.Lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	leases := make([]run.Lease, 0, len(e.active))
	for id, d := range e.active {
		leases = append(leases, run.Lease{RunID: id, Epoch: d.epoch.Load()})
	}
	return leases
}

// Stir tells the one who works on a run that there is news for it.
func (e *Engine) Stir(runID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := e.active[runID]; d != nil {
		d.tell()
	}
}
