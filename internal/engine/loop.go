package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// drive is the main loop of a run: advance as far as possible, commit with the
// operations of steps, start steps with effects, wait for their results.
func (d *driver) drive(ctx context.Context) {
	defer d.settleInFlight()
	for ctx.Err() == nil {
		d.executions.pending = d.executions.pending[:0]
		d.advance(ctx, d.state.root)
		switch {
		case d.stopped:
			d.drain(ctx)
			return
		case d.state.earlyEnd != nil:
			d.endEarly(ctx)
			return
		case d.state.root.settled():
			d.conclude(ctx)
			return
		case d.executions.limitReached():
			d.state.failEarly(run.Failure{Code: run.CodeRunTimeout, Message: fmt.Sprintf("The run exceeded its timeout: its steps were executed for %s.", clock.FormatDuration(d.executions.limit))})
			d.endEarly(ctx)
			return
		case d.changes.full() && len(d.changes.operations) == 0:
			if !d.commit(ctx, d.decide(run.Decision{Executing: d.executions.paths()})) {
				return
			}
			continue
		case len(d.executions.pending)+len(d.executions.inFlight)+len(d.changes.operations) == 0:
			d.commit(ctx, d.decide(run.Decision{Release: true, WakeAt: d.state.nextWake(&d.executions)}))
			return
		}
		decision := d.decide(run.Decision{Executing: d.executions.paths()})
		if !decision.Empty() && !d.commit(ctx, decision) {
			return
		}
		if len(d.executions.pending) > 0 && !d.engine.holdsLease() {
			d.log.Warn("not starting steps: another node may own the run")
			return
		}
		for _, p := range d.executions.pending {
			d.executeAsync(ctx, p)
		}
		if len(decision.Operations) > 0 && d.stop.Err() == nil {
			continue // with their answers
		}
		if !d.await(ctx) {
			return
		}
	}
}

// await waits for a result, an answer or the time of a waiting step. It returns
// false if the run was aborted, or if the engine stopped and released the run.
func (d *driver) await(ctx context.Context) bool {
	timer := time.NewTimer(max(0, min(clock.UntilSteady(d.state.nextWake(&d.executions)), d.executions.remaining())))
	defer timer.Stop()
	select {
	case <-d.nudges:
		d.fetchAnswers(ctx)
		return true
	case r := <-d.executions.results:
		d.apply(r)
		for {
			select {
			case r := <-d.executions.results:
				d.apply(r)
			default:
				return true
			}
		}
	case <-timer.C:
		// An answer that arrived in time counts even if its nudge was lost.
		d.fetchAnswers(ctx)
		return true
	case <-ctx.Done():
		return false
	case <-d.stop.Done():
		d.drain(ctx)
		return false
	}
}

// drain waits up to drainTime for steps in flight, then releases the run. The next
// owner of the run executes unfinished steps again.
func (d *driver) drain(ctx context.Context) {
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	for len(d.executions.inFlight) > 0 {
		select {
		case r := <-d.executions.results:
			d.apply(r)
			continue
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		break
	}
	switch {
	case d.state.earlyEnd != nil:
		d.endEarly(ctx)
	case d.state.root.settled():
		d.conclude(ctx)
	default:
		d.commit(ctx, d.decide(run.Decision{Release: true, WakeAt: clock.Steady()}))
	}
}

// conclude ends a run whose steps have all settled.
func (d *driver) conclude(ctx context.Context) {
	status, failure := frameResult(d.state.root)
	end := run.Finish{Status: status, Error: failure}
	if n := len(d.state.root.steps); n > 0 && d.state.snap.Parent != nil && d.state.root.steps[n-1].Status == run.StepSucceeded {
		last := d.state.root.steps[n-1]
		end.Output, end.OutputFiles = last.Output, last.OutputFiles
	}
	d.finish(ctx, end)
}

// endEarly ends a run before all its steps have settled. Open steps are cancelled.
func (d *driver) endEarly(ctx context.Context) {
	d.finish(ctx, run.Finish{Status: d.state.earlyEnd.status, Error: d.state.earlyEnd.failure, CutShort: true})
}

// settleInFlight aborts the steps in flight and waits for them, so that nothing of
// the run is executing when the driver returns.
func (d *driver) settleInFlight() {
	d.abort()
	for range d.executions.inFlight {
		dropped := <-d.executions.results
		dropped.files.drop()
		d.countDropped(dropped)
	}
}

// decide adds all changes since the last commit to a decision.
func (d *driver) decide(decision run.Decision) run.Decision {
	decision = d.changes.take(decision)
	decision.ExecutionTime = d.executions.time()
	if decision.Finish == nil {
		decision.WaitingStep = d.state.waitingStep()
	}
	return decision
}

// fetchAnswers reads the answers to waiting steps. It retries while the store fails,
// because a step with an answer must not time out.
func (d *driver) fetchAnswers(ctx context.Context) {
	var answers map[string]run.StepAnswer
	d.retryStore(ctx, "read the answers for a run", func() (err error) {
		answers, err = d.engine.store.Answers(ctx, d.lease.RunID)
		return err
	})
	d.state.setAnswers(answers)
	d.state.checkConnections()
	d.state.checkTimes()
}
