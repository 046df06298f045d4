package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// driver executes one run while this process holds its lease.
type driver struct {
	engine       *Engine
	stop         context.Context // ends when the engine should stop
	abort        context.CancelFunc
	unregistered chan struct{} // closed when another driver may take the run
	nudges       chan struct{} // receives a value when an answer may have arrived
	workflowID   string
	log          *slog.Logger

	lease  run.Lease
	epoch  atomic.Int64  // of the lease, readable by other goroutines
	fresh  *run.Snapshot // the run as it was started; nil if it must be read
	isTest bool
	stale  bool // the store has newer state: the run has to be read again
	// stopped reports whether the engine stopped while the run was waiting for files.
	stopped bool

	state      runState      // the steps of the run
	changes    pendingCommit // what the next commit writes
	secrets    secrets       // what must not be stored
	executions executions    // actions with effects
}

func newDriver(e *Engine, log *slog.Logger) *driver {
	d := &driver{engine: e, log: log, secrets: newSecrets()}
	d.state = runState{changes: &d.changes, secrets: &d.secrets, log: log, interrupted: map[*run.Step]bool{}}
	return d
}

// nudge makes the driver check the store for answers.
func (d *driver) nudge() {
	pubsub.Signal(d.nudges)
}

// load reads the run and its program, and retries while the store fails. It returns
// false if there is nothing to execute.
func (d *driver) load(ctx context.Context) bool {
	var (
		found   bool
		corrupt *corruptError
	)
	done := d.retryStore(ctx, "load a run", func() (err error) {
		if found, err = d.tryLoad(ctx); errors.As(err, &corrupt) {
			return nil // retrying does not help
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
	d.state.snap = *snap
	program, err := run.ProgramOf(ctx, d.engine.programs, snap.Run)
	if errors.Is(err, workflow.ErrCorrupt) {
		err = &corruptError{err}
	}
	if err != nil || program == nil {
		return false, err
	}
	vars, err := d.fetchValues(ctx, program)
	if err != nil {
		return false, err
	}
	if err := d.openStates(ctx, snap); err != nil {
		return false, err
	}
	d.executions = newExecutions(snap.ExecutionTime, program.Timeout)
	return true, d.state.restore(program, vars)
}

// fetchValues reads the variables and secrets that the program uses, what to hide of its
// connections, and makes the seed of its random values.
func (d *driver) fetchValues(ctx context.Context, program *workflow.Program) (vars map[string]any, err error) {
	workspaceID := d.state.snap.WorkspaceID
	if program.Vars {
		if vars, err = d.engine.values.Vars(ctx, workspaceID); err != nil {
			return nil, err
		}
	}
	if program.Links { // fail now, where it is retried; later the step would fail
		if _, err := d.engine.links.Link(ctx, workspaceID, d.state.snap.ID, ""); err != nil {
			return nil, err
		}
	}
	if program.Random {
		if d.state.seed, err = d.engine.vault.Sign(ctx, workspaceID, "random values", []byte(d.state.snap.ID)); err != nil {
			return nil, err
		}
	}
	if len(program.Secrets) > 0 {
		if d.secrets.values, err = d.engine.values.Open(ctx, workspaceID, program.Secrets); err != nil {
			return nil, err
		}
		d.secrets.hide(d.engine.masks.Of(workspaceID, slices.Collect(maps.Values(d.secrets.values))))
	}
	if len(program.Connections) > 0 {
		secrets, err := d.engine.connections.Mask(ctx, workspaceID, program.Connections)
		if err != nil {
			return nil, err
		}
		d.secrets.hide(secrets)
	}
	return vars, nil
}

const (
	minStorePause = 50 * time.Millisecond
	maxStorePause = 5 * time.Second
)

// retryStore calls do until it succeeds, with backoff. It returns false if the run
// was aborted or the engine stops.
func (d *driver) retryStore(ctx context.Context, operation string, do func() error) bool {
	for pause := minStorePause; ; pause = min(2*pause, maxStorePause) {
		err := do()
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		}
		d.log.Error("the store failed; retrying", "operation", operation, "error", err)
		if !d.pause(ctx, pause) {
			return false
		}
	}
}

// pause sleeps. It returns false if the run was aborted or the engine stops.
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

// commit writes a decision and retries while the store fails. It returns false if
// the lease is lost or the engine stops.
func (d *driver) commit(ctx context.Context, decision run.Decision) bool {
	var committed run.Committed
	sealed, attempts := false, 0
	done := d.retryStore(ctx, "write a checkpoint", func() (err error) {
		if !sealed {
			if err := d.sealStates(ctx, &decision); err != nil {
				return err
			}
			sealed = true
		}
		attempts++
		committed, err = d.engine.store.Commit(ctx, d.lease, d.state.snap.Run, decision)
		if d.stale = errors.Is(err, run.ErrAnswered); d.stale {
			return nil // retrying does not help
		}
		return err
	})
	d.settleFiles(decision.Files, done && attempts == 1 && !committed.Held)
	if !done || d.stale {
		return false
	}
	failpoint.Hit(failpoint.AfterCheckpoint, d.lease.RunID)
	if !committed.Held {
		d.engine.counts.leasesLost.Add(1)
		d.log.Info("lost the lease of a run; dropping its uncommitted work")
	}
	if len(committed.Answers) > 0 {
		d.state.setAnswers(committed.Answers)
	}
	return committed.Held
}

// fail makes the run fail for a reason outside of its steps.
func (d *driver) fail(ctx context.Context, code, message string) {
	d.finish(ctx, run.Finish{Status: run.Failed, Error: &run.Failure{Code: code, Message: message}, CutShort: true})
}

// recoverPanic makes the run fail if its driver panics, so that a bug does not end
// the process.
func (d *driver) recoverPanic(ctx context.Context) {
	cause := recover()
	if cause == nil {
		return
	}
	d.log.Error("panic while executing a run", "panic", cause, "stack", string(debug.Stack()))
	d.dropFiles()
	d.changes.discard() // they may be inconsistent
	d.fail(context.WithoutCancel(ctx), run.CodeInternal, "The run failed because of an internal error in Stepmill.")
}

// quarantine makes a run fail that has repeatedly crashed the process.
func (d *driver) quarantine(ctx context.Context) {
	d.log.Error("a run is quarantined: the process crashed repeatedly while executing it", "crashes", d.changes.crashes)
	d.fail(ctx, run.CodeQuarantined, fmt.Sprintf(
		"The service crashed %d times while executing the same step of this run, so the run was stopped. Retry the run to execute the step again.", d.changes.crashes))
}

// finish commits the last steps and the end of the run.
func (d *driver) finish(ctx context.Context, end run.Finish) {
	end.At = clock.Now()
	ended := d.state.snap.Run
	ended.Status, ended.Error = end.Status, end.Error
	e, err := run.EndedEvent(ended, d.state.snap.WorkflowName, end.At)
	if err != nil {
		d.log.Error("cannot create the event of a finished run", "error", err)
		return
	}
	end.Event = e
	if d.commit(ctx, d.decide(run.Decision{Finish: &end})) && end.Error != nil {
		d.engine.counts.runFailures.Add(end.Error.Code)
	}
}

// corruptError is returned if the stored state of a run is invalid. Retrying does not
// help.
type corruptError struct{ error }

func (e *corruptError) Unwrap() error { return e.error }
