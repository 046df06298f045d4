package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

const (
	// maxChanged is the number of changed steps after which a commit is made.
	maxChanged = 500
	// recentChanges is how many recent changes are searched for duplicates.
	recentChanges = 8
)

// drive is the main loop of a run: advance as far as possible, commit, start steps
// with effects, wait for their results.
func (d *driver) drive(ctx context.Context) {
	defer d.settleInFlight()
	for ctx.Err() == nil {
		d.pending = d.pending[:0]
		d.advance(ctx, d.root)
		switch {
		case d.earlyEnd != nil:
			d.endEarly(ctx)
			return
		case d.root.settled():
			d.conclude(ctx)
			return
		case d.timeLimitReached():
			d.failEarly(run.Failure{Code: run.CodeRunTimeout, Message: fmt.Sprintf("The run exceeded its timeout: its steps were executed for %s.", clock.FormatDuration(d.timeout))})
			d.endEarly(ctx)
			return
		case d.batchFull():
			if !d.commit(ctx, d.takeDecision(run.Decision{Executing: d.executing()})) {
				return
			}
			continue
		case len(d.pending) == 0 && len(d.inFlight) == 0:
			d.commit(ctx, d.takeDecision(run.Decision{Release: true, WakeAt: d.nextWake()}))
			return
		}
		decision := d.takeDecision(run.Decision{Executing: d.executing()})
		if !decision.Empty() && !d.commit(ctx, decision) {
			return
		}
		if len(d.pending) > 0 && !d.engine.holdsLease() {
			d.log.Warn("not starting steps: another node may own the run")
			return
		}
		for _, p := range d.pending {
			d.executeAsync(ctx, p)
		}
		if !d.await(ctx) {
			return
		}
	}
}

// batchFull reports whether there are enough changes for a commit. A loop of pure
// steps must neither block other writes for long nor start over after a crash.
func (d *driver) batchFull() bool { return len(d.changed) >= maxChanged }

// await waits for a result, an answer or the time of a waiting step. It returns
// false if the run was aborted, or if the engine stopped and released the run.
func (d *driver) await(ctx context.Context) bool {
	timer := time.NewTimer(max(0, min(clock.Until(d.nextWake()), d.timeRemaining())))
	defer timer.Stop()
	select {
	case <-d.nudges:
		d.fetchAnswers(ctx)
		return true
	case r := <-d.results:
		d.apply(r)
		for {
			select {
			case r := <-d.results:
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
	for len(d.inFlight) > 0 {
		select {
		case r := <-d.results:
			d.apply(r)
			continue
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		break
	}
	switch {
	case d.earlyEnd != nil:
		d.endEarly(ctx)
	case d.root.settled():
		d.conclude(ctx)
	default:
		d.commit(ctx, d.takeDecision(run.Decision{Release: true, WakeAt: clock.Now()}))
	}
}

// conclude ends a run whose steps have all settled.
func (d *driver) conclude(ctx context.Context) {
	status, failure := frameResult(d.root)
	end := run.Finish{Status: status, Error: failure}
	if n := len(d.root.steps); n > 0 && d.snap.Parent != nil && d.root.steps[n-1].Status == run.StepSucceeded {
		end.Output = d.root.steps[n-1].Output
	}
	d.finish(ctx, end)
}

// endEarly ends a run before all its steps have settled. Open steps are cancelled.
func (d *driver) endEarly(ctx context.Context) {
	d.finish(ctx, run.Finish{Status: d.earlyEnd.status, Error: d.earlyEnd.failure, CutShort: true})
}

// settleInFlight aborts the steps in flight and waits for them, so that nothing of
// the run is executing when the driver returns.
func (d *driver) settleInFlight() {
	d.abort()
	for range d.inFlight {
		d.countDropped(<-d.results)
	}
}

// nextWake returns the earliest time at which a waiting step wakes up, or an hour
// from now if there is none.
func (d *driver) nextWake() time.Time {
	var next *time.Time
	for p := range d.root.unsettled() {
		step := p.step()
		_, inFlight := d.inFlight[step]
		if step.Status == run.StepWaiting && !inFlight && step.WakeAt != nil && (next == nil || step.WakeAt.Before(*next)) {
			next = step.WakeAt
		}
	}
	if next == nil {
		return clock.Now().Add(time.Hour)
	}
	return *next
}

// change adds a step to the next commit.
func (d *driver) change(step *run.Step) {
	if !slices.Contains(d.changed[max(0, len(d.changed)-recentChanges):], step) {
		d.changed = append(d.changed, step)
	}
}

// takeDecision adds all changes since the last commit to a decision.
func (d *driver) takeDecision(decision run.Decision) run.Decision {
	seen := make(map[*run.Step]bool, len(d.changed))
	for _, step := range d.changed {
		if !seen[step] {
			seen[step] = true
			decision.Steps = append(decision.Steps, *step)
			// A failed attempt also shows that the step no longer crashes.
			decision.ClearCrashes = decision.ClearCrashes || d.crashes > 0 && step.Status != run.StepRunning
		}
	}
	if decision.ClearCrashes {
		d.crashes = 0
	}
	d.rev++
	decision.Rev, decision.Attempts, decision.Logs, decision.Ran, decision.Logged = d.rev, d.attempts, d.logs, d.executionTime(), d.logged
	decision.Unanswered = d.unanswered
	if decision.Finish == nil {
		decision.WaitingStep = d.waitingStep()
	}
	d.attempts, d.logs, d.unanswered, d.changed = nil, nil, nil, d.changed[:0]
	return decision
}

// waitingStep returns the path of the step that the run waits for, or "".
func (d *driver) waitingStep() string {
	step := run.WaitingStep(func(yield func(*run.Step) bool) {
		d.root.visit(func(p stepRef) bool { return yield(p.step()) })
	})
	if step == nil {
		return ""
	}
	return step.Path
}

// executing lists the paths of the steps that execute after the next commit.
func (d *driver) executing() []string {
	var paths []string
	for _, p := range d.pending {
		paths = append(paths, p.step().Path)
	}
	for step := range d.inFlight {
		paths = append(paths, step.Path)
	}
	slices.Sort(paths)
	return paths
}

// fetchAnswers reads the answers to waiting steps. It retries while the store fails,
// because a step with an answer must not time out.
func (d *driver) fetchAnswers(ctx context.Context) {
	var answers map[string]json.RawMessage
	d.retryStore(ctx, "read the answers for a run", func() (err error) {
		answers, err = d.engine.store.Answers(ctx, d.lease.RunID)
		return err
	})
	for p := range d.root.unsettled() {
		if answer, ok := answers[p.step().Path]; ok {
			p.step().Answer = answer
		}
	}
}

// executionTime returns the total time for which steps have been executed.
func (d *driver) executionTime() time.Duration {
	if len(d.inFlight) == 0 {
		return d.ran
	}
	return d.ran + clock.Now().Sub(d.busySince)
}

// timeLimitReached reports whether the run has steps to execute but no time left.
func (d *driver) timeLimitReached() bool {
	return len(d.pending)+len(d.inFlight) > 0 && d.executionTime() >= d.timeout
}

// timeRemaining returns how long the steps in flight may take before the run exceeds
// its timeout.
func (d *driver) timeRemaining() time.Duration {
	if len(d.inFlight) == 0 {
		return d.timeout
	}
	return d.timeout - d.executionTime()
}
