package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// driver works on one run while this process holds its lease.
type driver struct {
	engine     *Engine
	stop       context.Context // ends when the engine should stop
	abort      context.CancelFunc
	left       chan struct{}
	workflowID string
	log        *slog.Logger

	lease run.Lease
	fresh *run.Snapshot // the run as it was handed over, if it was
	snap  run.Snapshot
	root  *frame
	seq   int

	inFlight map[*run.Step]place // being executed right now
	pending  []place             // to be executed once all is committed
	changed  []*run.Step         // to write with the next commit
	attempts []run.Attempt       // to write with it
	fatal    *run.Failure        // ends the run whatever its steps do
	results  chan result
}

// load reads the run and its plan. It answers false when there is nothing to
// work on; a store that does not answer is asked again.
func (d *driver) load(ctx context.Context) bool {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		found, err := d.tryLoad(ctx)
		var corrupt *corruptError
		switch {
		case err == nil:
			return found
		case ctx.Err() != nil: // the run was taken away
			return false
		case errors.As(err, &corrupt):
			d.log.Error("the stored state of a run cannot be read", "error", err)
			d.fail(ctx, run.CodeCorruptState, "The stored state of the run cannot be read.")
			return false
		}
		d.log.Error("cannot load a run; trying again", "error", err)
		if !d.pause(ctx, pause) {
			return false
		}
	}
}

func (d *driver) tryLoad(ctx context.Context) (bool, error) {
	snap, err := d.fresh, error(nil)
	if snap == nil {
		snap, err = d.engine.store.Snapshot(ctx, d.lease.RunID)
	}
	if err != nil || snap == nil || snap.Status != run.Running {
		return false, err
	}
	d.snap = *snap
	plan, err := d.engine.plans.get(ctx, snap.WorkflowID, snap.WorkflowVersion)
	if err != nil || plan == nil {
		return false, err
	}
	return true, d.restore(plan)
}

// restore rebuilds the state in memory from the rows.
func (d *driver) restore(plan *workflow.Plan) error {
	payload, err := expr.FromJSON(d.snap.Trigger.Payload)
	if err != nil {
		return &corruptError{err}
	}
	d.root = newFrame(plan, "", &expr.Env{
		Trigger:  expr.Trigger{Type: d.snap.Trigger.Type, ID: d.snap.Trigger.ID, Payload: payload},
		Steps:    map[string]expr.Step{},
		Run:      expr.Run{ID: d.snap.ID, StartedAt: d.snap.StartedAt},
		Workflow: expr.Workflow{ID: d.snap.WorkflowID, Name: d.snap.WorkflowName, Version: d.snap.WorkflowVersion},
	})
	d.inFlight, d.results = map[*run.Step]place{}, make(chan result)
	for _, step := range d.snap.Steps {
		d.seq = max(d.seq, step.Seq)
		p, counts, err := d.find(step.Path)
		if err != nil {
			return &corruptError{err}
		}
		if !counts {
			continue
		}
		p.steps[p.i] = &step
		if err := p.publish(); err != nil {
			return &corruptError{err}
		}
	}
	return nil
}

const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// pause waits, and answers false when there is no point in going on.
func (d *driver) pause(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-d.stop.Done():
		return false
	}
}

// commit writes a decision, again and again while the store does not answer.
// It answers false when the lease is lost or the engine stops.
func (d *driver) commit(ctx context.Context, decision run.Decision) bool {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		held, err := d.engine.store.Commit(ctx, d.lease, d.snap.Run, decision)
		if err == nil {
			if !held {
				d.log.Info("the lease of a run is lost; its work is dropped")
			}
			return held
		}
		if ctx.Err() != nil {
			return false
		}
		d.log.Error("cannot write a checkpoint; trying again", "error", err)
		if !d.pause(ctx, pause) {
			return false
		}
	}
}

// fail ends the run for a reason that lies outside its steps.
func (d *driver) fail(ctx context.Context, code, message string) {
	d.finish(ctx, run.Failed, &run.Failure{Code: code, Message: message})
}

// finish commits the last steps and the end of the run.
func (d *driver) finish(ctx context.Context, status run.Status, failure *run.Failure) {
	now := clock.Now()
	ended := d.snap.Run
	ended.Status, ended.Error = status, failure
	e, err := run.EndedEvent(ended, d.snap.WorkflowName, now)
	if err != nil {
		d.log.Error("cannot make the event of a run's end", "error", err)
		return
	}
	d.commit(ctx, d.decide(run.Decision{Finish: &run.Finish{Status: status, Error: failure, At: now, Event: e}}))
}
