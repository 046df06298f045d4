package engine

import (
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/tally"
)

// Stats is what an engine has done so far, and what it is busy with.
type Stats struct {
	// Active is how many runs are in its hands.
	Active int
	// Stuck is how many actions go on although their time is over.
	Stuck int
	// LeasesLost is how often a run was found to be somebody else's, cancelled or
	// deleted when its progress was to be written.
	LeasesLost int64
	// Actions are those of the catalog, by name.
	Actions map[string]ActionStats
	// StepFailures counts attempts of steps that failed, RunFailures runs that
	// did, by code.
	StepFailures, RunFailures map[string]int64
}

// ActionStats is what came of executing an action.
type ActionStats struct {
	// Outcomes counts attempts by outcome.
	Outcomes map[string]int64
	// Duration is how long the action was at work, without waiting.
	Duration tally.Snapshot
}

// How an attempt of a step can come out.
const (
	succeeded = "succeeded"
	failed    = "failed"
	retried   = "retried"   // it failed, and another attempt follows
	waiting   = "waiting"   // it goes on later
	dropped   = "cancelled" // its run has ended or was taken away meanwhile
)

// counts is what the engine counts. Its maps do not change once made.
type counts struct {
	leasesLost   atomic.Int64
	actions      map[string]*actionCounts
	stepFailures *tally.Set
	runFailures  *tally.Set
}

type actionCounts struct {
	outcomes *tally.Set
	took     *tally.Histogram
}

func newCounts(catalog *action.Catalog) *counts {
	codes := append(run.Codes(), action.InvalidInput, action.TimedOut, expr.CodeInvalid, expr.CodeFailed, expr.CodeCost)
	c := &counts{actions: map[string]*actionCounts{}}
	for _, name := range catalog.Names() {
		entry, _ := catalog.Find(name)
		for _, code := range entry.Spec.Codes {
			codes = append(codes, code.Name)
		}
		c.actions[name] = &actionCounts{
			outcomes: tally.NewSet(succeeded, failed, retried, waiting, dropped),
			took: tally.NewTimes(10*time.Microsecond, 100*time.Microsecond, time.Millisecond, 5*time.Millisecond, 25*time.Millisecond, 100*time.Millisecond,
				250*time.Millisecond, 500*time.Millisecond, time.Second, 2500*time.Millisecond, 10*time.Second, time.Minute, 5*time.Minute),
		}
	}
	c.stepFailures, c.runFailures = tally.NewSet(codes...), tally.NewSet(codes...)
	return c
}

// Stats tells what the engine has done.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	active := len(e.active)
	e.mu.Unlock()
	stats := Stats{
		Active: active, Stuck: e.Stuck(), LeasesLost: e.counts.leasesLost.Load(), Actions: map[string]ActionStats{},
		StepFailures: e.counts.stepFailures.Counts(), RunFailures: e.counts.runFailures.Counts(),
	}
	for name, of := range e.counts.actions {
		stats.Actions[name] = ActionStats{Outcomes: of.outcomes.Counts(), Duration: of.took.Snapshot()}
	}
	return stats
}

// countExecution counts an action that was at work for so long.
func (d *driver) countExecution(step *run.Step, took time.Duration) {
	if of := d.engine.counts.actions[step.Type]; of != nil && !d.trial {
		of.took.Took(took)
	}
	d.countOutcome(step)
}

// countOutcome counts what came of an attempt, also of one that failed before
// its action was at work.
func (d *driver) countOutcome(step *run.Step) {
	of := d.engine.counts.actions[step.Type]
	if of == nil || d.trial {
		return
	}
	switch {
	case step.Status == run.StepSucceeded:
		of.outcomes.Add(succeeded)
		return
	case step.Error == nil:
		of.outcomes.Add(waiting)
		return
	case step.Status == run.StepFailed:
		of.outcomes.Add(failed)
	default:
		of.outcomes.Add(retried)
	}
	d.engine.counts.stepFailures.Add(step.Error.Code)
}

// countDropped counts an execution whose result does not matter any more.
func (d *driver) countDropped(r result) {
	if of := d.engine.counts.actions[r.at.step().Type]; of != nil {
		of.outcomes.Add(dropped)
		of.took.Took(r.took)
	}
}
