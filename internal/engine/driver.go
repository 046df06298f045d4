package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// driver works on one run while this process holds its lease.
type driver struct {
	engine     *Engine
	stop       context.Context // ends when the engine should stop
	abort      context.CancelFunc
	left       chan struct{}
	news       chan struct{} // there is something new for the run in the store
	workflowID string
	log        *slog.Logger

	lease   run.Lease
	epoch   atomic.Int64  // of the lease, for others to see
	fresh   *run.Snapshot // the run as it was handed over, if it was
	snap    run.Snapshot
	limits  auth.Limits
	timeout time.Duration
	root    *frame
	seq     int // of the last step that started
	rev     int // of the last commit
	size    int // of all that the run keeps, in bytes
	crashes int // held against the run until it gets further
	trial   bool
	stale   bool // the store knows more than this driver: it has to be read anew
	logged  int  // of the run's logs, in bytes

	secrets map[string]string            // that the plan refers to
	mask    *mask.Masker                 // hides them in all that is kept
	inputs  map[*run.Step]map[string]any // as they were before that
	masks   map[*run.Step]*mask.Masker   // of steps with more to hide: links

	inFlight  map[*run.Step]place // being executed right now
	busySince time.Time           // since when something is
	ran       time.Duration       // how long something was, before that
	pending   []place             // to be executed once all is committed
	changed   []*run.Step         // to write with the next commit
	attempts  []run.Attempt       // to write with it
	// unanswered are the steps among changed that settled for want of an answer.
	unanswered []string
	logs       []run.LogLine // to write with it
	over       *finale       // ends the run whatever its steps do
	results    chan result
}

// finale is an end that does not come from all steps having settled.
type finale struct {
	status  run.Status
	failure *run.Failure
}

// giveUp ends the run as failed once the current move is over.
func (d *driver) giveUp(failure run.Failure) {
	if d.over == nil {
		d.over = &finale{run.Failed, &failure}
	}
}

// tell wakes the driver up to look into the store.
func (d *driver) tell() {
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// load reads the run and its plan. It answers false when there is nothing to
// work on; a store that does not answer is asked again.
func (d *driver) load(ctx context.Context) bool {
	var (
		found   bool
		corrupt *corruptError
	)
	done := d.insist(ctx, "load a run", func() (err error) {
		if found, err = d.tryLoad(ctx); errors.As(err, &corrupt) {
			return nil // it would be the same again
		}
		return err
	})
	if corrupt != nil && ctx.Err() == nil {
		d.log.Error("the stored state of a run cannot be read", "error", corrupt)
		d.fail(ctx, run.CodeCorruptState, "The stored state of the run cannot be read.")
		return false
	}
	return done && found
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
	plan, err := run.PlanOf(ctx, d.engine.plans, snap.Run)
	if errors.Is(err, workflow.ErrCorrupt) {
		err = &corruptError{err}
	}
	if err != nil || plan == nil {
		return false, err
	}
	vars, err := d.fetchValues(ctx, plan)
	if err != nil {
		return false, err
	}
	return true, d.restore(plan, vars)
}

// restore rebuilds the state in memory from the rows.
func (d *driver) restore(plan *workflow.Plan, vars map[string]any) error {
	trigger, err := d.snap.Trigger.Seen()
	if err != nil {
		return &corruptError{err}
	}
	d.root = newFrame(plan, "", &expr.Env{
		Trigger:  trigger,
		Steps:    map[string]expr.Step{},
		Run:      expr.Run{ID: d.snap.ID, StartedAt: d.snap.StartedAt},
		Workflow: expr.Workflow{ID: d.snap.WorkflowID, Name: d.snap.WorkflowName, Version: d.snap.WorkflowVersion},
		Secrets:  d.secrets,
		Vars:     vars,
	})
	d.inputs, d.masks = map[*run.Step]map[string]any{}, map[*run.Step]*mask.Masker{}
	d.inFlight, d.results = map[*run.Step]place{}, make(chan result)
	d.limits, d.timeout, d.ran, d.size, d.logged = d.snap.Plan.Limits(), plan.Timeout, d.snap.Ran, d.snap.Trigger.Size(), d.snap.Logged
	for _, step := range d.snap.Steps {
		d.seq, d.rev = max(d.seq, step.Seq), max(d.rev, step.Rev)
		d.size += len(step.Input) + len(step.Output)
		p, counts, err := d.find(step.Path)
		if err != nil {
			return &corruptError{err}
		}
		if !counts {
			continue
		}
		if !step.Status.Settled() && !(readable(step.Input) && readable(step.Answer)) {
			return &corruptError{fmt.Errorf("the input or the answer of step %q is not JSON", step.Path)}
		}
		p.steps[p.i] = &step
		if err := p.publish(); err != nil {
			return &corruptError{err}
		}
		d.fold(p.frame)
	}
	return nil
}

func readable(value json.RawMessage) bool { return value == nil || json.Valid(value) }

const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// insist asks the store again and again while it does not answer. It answers
// false when there is no point in going on: the run was taken away, or the
// engine stops.
func (d *driver) insist(ctx context.Context, doing string, ask func() error) bool {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := ask()
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		}
		d.log.Error("the store does not answer; trying again", "doing", doing, "error", err)
		if !d.pause(ctx, pause) {
			return false
		}
	}
}

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
	held := false
	done := d.insist(ctx, "write a checkpoint", func() (err error) {
		held, err = d.engine.store.Commit(ctx, d.lease, d.snap.Run, decision)
		if d.stale = errors.Is(err, run.ErrAnswered); d.stale {
			return nil // it would be the same again
		}
		return err
	})
	if !done || d.stale {
		return false
	}
	failpoint.Hit(failpoint.AfterCheckpoint, d.lease.RunID)
	if !held {
		d.engine.counts.leasesLost.Add(1)
		d.log.Info("the lease of a run is lost; its work is dropped")
	}
	return held
}

// fail ends the run for a reason that lies outside its steps.
func (d *driver) fail(ctx context.Context, code, message string) {
	d.finish(ctx, run.Finish{Status: run.Failed, Error: &run.Failure{Code: code, Message: message}, CutShort: true})
}

// survive keeps a mistake in the handling of one run from ending the process:
// that run fails.
func (d *driver) survive(ctx context.Context) {
	cause := recover()
	if cause == nil {
		return
	}
	d.log.Error("panic while a run was worked on", "panic", cause, "stack", string(debug.Stack()))
	d.changed, d.attempts, d.logs, d.unanswered = nil, nil, nil, nil // nobody knows in what state they are
	d.fail(context.WithoutCancel(ctx), run.CodeInternal, "The run failed for a reason inside Stepmill.")
}

// quarantine ends a run that is under suspicion of ending the process.
func (d *driver) quarantine(ctx context.Context) {
	d.log.Error("a run is quarantined: the process has died again and again while it was executed", "crashes", d.crashes)
	d.fail(ctx, run.CodeQuarantined, fmt.Sprintf(
		"The service stopped abruptly %d times while the same step of this run was executed. It is not executed again; a retry is.", d.crashes))
}

// finish commits the last steps and the end of the run.
func (d *driver) finish(ctx context.Context, end run.Finish) {
	end.At = clock.Now()
	ended := d.snap.Run
	ended.Status, ended.Error = end.Status, end.Error
	e, err := run.EndedEvent(ended, d.snap.WorkflowName, end.At)
	if err != nil {
		d.log.Error("cannot make the event of a run's end", "error", err)
		return
	}
	end.Event = e
	if d.commit(ctx, d.decide(run.Decision{Finish: &end})) && end.Error != nil {
		d.engine.counts.runFailures.Add(end.Error.Code)
	}
}

// corruptError says that what is stored of a run cannot be understood, so that
// trying again is of no use.
type corruptError struct{ error }

func (e *corruptError) Unwrap() error { return e.error }
