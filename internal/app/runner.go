package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/dispatch"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/engine"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/sandbox"
	"github.com/stepmill/stepmill/internal/subscription"
	"github.com/stepmill/stepmill/internal/trigger"
	"github.com/stepmill/stepmill/internal/webhook"
)

// runner executes runs, sends webhooks and fires triggers.
type runner struct {
	data *storage
	log  *slog.Logger

	egress   *egress.Client
	scripts  *sandbox.Pool
	dispatch dispatch.Dispatcher
	engine   *engine.Engine
	runs     *run.Service
	sender   *webhook.Sender
	triggers *trigger.Types // nil until assembled: those of the catalog
	firers   *trigger.Firers

	subscriptions *subscription.Reconciler
	appCalls      *subscription.Fanout

	counts      *runCounts
	shared      atomic.Bool // there is more than one workspace
	awaitsSpace atomic.Bool // no runs are executed until the disk has space
}

// start starts executing runs, sending webhooks and firing triggers. On a full
// disk it returns nil and starts them when there is space.
func (r *runner) start(ctx, work context.Context, parts *group) error {
	r.countWorkspaces(ctx)
	err := r.recoverRuns(ctx)
	if fault.Is(err, fault.StorageFull) {
		r.awaitsSpace.Store(true)
		r.log.Warn("the service does not execute runs", "error", errAwaitsSpace)
		parts.start(func() error { return r.awaitSpace(work, parts) })
		return nil
	}
	if err == nil {
		r.execute(work, parts)
	}
	return err
}

var errAwaitsSpace = errors.New("the disk is full: reads are served, nothing can be changed, and runs continue when there is space")

// spaceCheckEvery is the interval at which a server that was started on a full
// disk looks for space.
const spaceCheckEvery = 2 * time.Second

func (r *runner) awaitSpace(work context.Context, parts *group) error {
	for {
		select {
		case <-work.Done():
			return nil
		case <-time.After(spaceCheckEvery):
		}
		err := r.recoverRuns(work)
		if fault.Is(err, fault.StorageFull) || work.Err() != nil {
			continue
		}
		if err == nil {
			r.log.Info("the disk has space again: executing runs")
			r.execute(work, parts)
			r.awaitsSpace.Store(false)
		}
		return err
	}
}

// recoverRuns queues the runs of the previous process.
func (r *runner) recoverRuns(ctx context.Context) error {
	if err := r.dispatch.Recover(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("resume the runs of the previous process: %w", err)
	}
	return nil
}

// execute starts the parts that work on runs.
func (r *runner) execute(work context.Context, parts *group) {
	// From here on, a run that crashes the process is blamed for it.
	if err := r.data.starts.ready(); err != nil {
		r.log.Warn("cannot record that the service is ready", "error", err)
	}
	parts.start(func() error { return r.dispatch.Run(work) })
	parts.start(func() error { return r.engine.Run(work) })
	parts.start(func() error { return r.sender.Run(work) })
	for _, firer := range r.firers.All() {
		parts.start(func() error { return firer.Run(work) })
	}
	parts.start(func() error { return r.subscriptions.Run(work) })
	parts.start(func() error { return r.appCalls.Run(work) })
}

// countWorkspaces finds out whether this process or another one has created a
// second workspace. Workspaces are never deleted.
func (r *runner) countWorkspaces(ctx context.Context) {
	if r.shared.Load() {
		return
	}
	several, err := r.data.store.Workspaces.HasSeveralWorkspaces(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		r.log.Warn("cannot count the workspaces", "error", err)
	case several:
		r.shareCapacity()
	}
}

// shareCapacity keeps one workspace from using all slots for runs or scripts.
func (r *runner) shareCapacity() {
	if r.shared.Swap(true) {
		return
	}
	r.scripts.Share()
	r.dispatch.Share()
}

// nudge notifies the engine and the dispatcher that an answer for a run arrived.
func (r *runner) nudge(runID string) {
	r.engine.Nudge(runID)
	r.dispatch.Nudge(runID)
}

// wakeTriggers makes the triggers check what is due, since another node may have
// changed it.
func (r *runner) wakeTriggers() {
	r.firers.WakeAll()
	r.subscriptions.Wake(time.Time{}) // before all times
}

// close closes connections of steps and webhooks, and ends the processes of
// scripts.
func (r *runner) close() {
	if r.egress != nil {
		r.egress.Close()
	}
	if r.scripts != nil {
		r.scripts.Close()
	}
}
