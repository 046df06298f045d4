package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/duration"
	"github.com/stepmill/stepmill/internal/run"
)

const (
	// maxChanged is how many steps a commit holds before another begins.
	maxChanged = 500
	// recent is how far back a step is looked for that changes again at once.
	recent = 8
)

// drive is the loop of a run: move as far as results allow, commit, start what
// has effects, wait for what comes back.
func (d *driver) drive(ctx context.Context) {
	defer d.settleInFlight()
	for ctx.Err() == nil {
		d.pending = d.pending[:0]
		d.advance(ctx, d.root)
		switch {
		case d.over != nil:
			d.cutShort(ctx)
			return
		case d.root.settled():
			d.conclude(ctx)
			return
		case d.timeOver():
			d.giveUp(run.Failure{Code: run.CodeRunTimeout, Message: fmt.Sprintf("The steps of the run were executed for %s, which is the most its settings allow.", duration.Format(d.timeout))})
			d.cutShort(ctx)
			return
		case d.full():
			if !d.commit(ctx, d.decide(run.Decision{Executing: d.executing()})) {
				return
			}
			continue
		case len(d.pending) == 0 && len(d.inFlight) == 0:
			d.commit(ctx, d.decide(run.Decision{Release: true, WakeAt: d.nextWake()}))
			return
		}
		decision := d.decide(run.Decision{Executing: d.executing()})
		if !decision.Empty() && !d.commit(ctx, decision) {
			return
		}
		if len(d.pending) > 0 && !d.engine.trusted() {
			d.log.Warn("nothing is started: others may have the run")
			return
		}
		for _, p := range d.pending {
			d.launch(ctx, p)
		}
		if !d.await(ctx) {
			return
		}
	}
}

// full tells that enough has gathered for a commit of its own: a loop of pure
// steps must neither hold up other writes nor start all over after a crash.
func (d *driver) full() bool { return len(d.changed) >= maxChanged }

// await waits for a result or for the time of a waiting step. It answers false
// when the work ends here: the run was taken away, or the engine has stopped
// and the run was handed back.
func (d *driver) await(ctx context.Context) bool {
	timer := time.NewTimer(max(0, min(clock.Until(d.nextWake()), d.timeLeft())))
	defer timer.Stop()
	select {
	case <-d.news:
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
		// An answer that came in time counts, also if it is not heard of yet.
		d.fetchAnswers(ctx)
		return true
	case <-ctx.Done():
		return false
	case <-d.stop.Done():
		d.drain(ctx)
		return false
	}
}

// drain lets steps under way finish for a while, then hands the run back. A
// step that did not finish is executed again by whoever takes the run up.
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
	case d.over != nil:
		d.cutShort(ctx)
	case d.root.settled():
		d.conclude(ctx)
	default:
		d.commit(ctx, d.decide(run.Decision{Release: true, WakeAt: clock.Now()}))
	}
}

// conclude ends a run whose steps are all settled.
func (d *driver) conclude(ctx context.Context) {
	status, failure := ending(d.root)
	end := run.Finish{Status: status, Error: failure}
	if n := len(d.root.steps); n > 0 && d.snap.Parent != nil {
		end.Output = d.root.steps[n-1].Output
	}
	d.finish(ctx, end)
}

// cutShort ends a run that does not go on: what is open is cancelled.
func (d *driver) cutShort(ctx context.Context) {
	d.finish(ctx, run.Finish{Status: d.over.status, Error: d.over.failure, CutShort: true})
}

// settleInFlight ends what is still being executed and waits for it, so that
// nothing of this run goes on once the driver has left it.
func (d *driver) settleInFlight() {
	d.abort()
	for range d.inFlight {
		d.countDropped(<-d.results)
	}
}

// nextWake is the earliest time that a waiting step waits for; without one it
// is so far away that something else comes first.
func (d *driver) nextWake() time.Time {
	var next *time.Time
	d.root.each(func(p place) {
		step := p.step()
		_, flying := d.inFlight[step]
		if step.Status == run.StepWaiting && !flying && step.WakeAt != nil && (next == nil || step.WakeAt.Before(*next)) {
			next = step.WakeAt
		}
	})
	if next == nil {
		return clock.Now().Add(time.Hour)
	}
	return *next
}

// change notes a step for the next commit.
func (d *driver) change(step *run.Step) {
	if !slices.Contains(d.changed[max(0, len(d.changed)-recent):], step) {
		d.changed = append(d.changed, step)
	}
}

// decide adds what changed since the last commit to a decision.
func (d *driver) decide(decision run.Decision) run.Decision {
	seen := make(map[*run.Step]bool, len(d.changed))
	for _, step := range d.changed {
		if !seen[step] {
			seen[step] = true
			decision.Steps = append(decision.Steps, *step)
			// Also an attempt that failed is something it got past.
			decision.Acquit = decision.Acquit || d.crashes > 0 && step.Status != run.StepRunning
		}
	}
	if decision.Acquit {
		d.crashes = 0
	}
	d.rev++
	decision.Rev, decision.Attempts, decision.Logs, decision.Ran, decision.Logged = d.rev, d.attempts, d.logs, d.ranSoFar(), d.logged
	decision.Unanswered = d.unanswered
	d.attempts, d.logs, d.unanswered, d.changed = nil, nil, nil, d.changed[:0]
	return decision
}

// executing lists the paths of what runs after the next commit.
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

// fetchAnswers takes in what has come for steps that wait. A store that does not
// answer is asked again: without it, a step could time out that has its answer.
func (d *driver) fetchAnswers(ctx context.Context) {
	var answers map[string]json.RawMessage
	d.insist(ctx, "read the answers for a run", func() (err error) {
		answers, err = d.engine.store.Answers(ctx, d.lease.RunID)
		return err
	})
	d.root.each(func(p place) {
		if answer, ok := answers[p.step().Path]; ok {
			p.step().Answer = answer
		}
	})
}

// ranSoFar is how long steps of the run have been executed.
func (d *driver) ranSoFar() time.Duration {
	if len(d.inFlight) == 0 {
		return d.ran
	}
	return d.ran + clock.Now().Sub(d.busySince)
}

// timeOver tells that the run has had all the time it may have and wants more.
func (d *driver) timeOver() bool {
	return len(d.pending)+len(d.inFlight) > 0 && d.ranSoFar() >= d.timeout
}

// timeLeft is how long what is in flight may go on before the run is over its
// time.
func (d *driver) timeLeft() time.Duration {
	if len(d.inFlight) == 0 {
		return d.timeout
	}
	return d.timeout - d.ranSoFar()
}
