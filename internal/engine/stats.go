package engine

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/counter"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/run"
)

// Stats are statistics of an engine.
type Stats struct {
	// Active is the number of runs in flight.
	Active int
	// Stuck is the number of actions that are still running after their timeout.
	Stuck int
	// LeasesLost counts commits that failed because the run was taken over,
	// cancelled or deleted.
	LeasesLost int64
	// Actions are the actions of the catalog, by name.
	Actions map[string]ActionStats
	// StepFailures counts failed attempts of steps, RunFailures failed runs, both by
	// code.
	StepFailures, RunFailures map[string]int64
}

// ActionStats are statistics of an action.
type ActionStats struct {
	// Outcomes counts attempts by outcome.
	Outcomes map[string]int64
	// Duration is the execution time of the action, without waits.
	Duration counter.Snapshot
}

// Outcomes of an attempt.
const (
	succeeded = "succeeded"
	failed    = "failed"
	retried   = "retried"   // it failed, and another attempt follows
	waiting   = "waiting"   // it continues later
	dropped   = "cancelled" // its run was ended or taken over in the meantime
)

// counts holds the counters of an engine. Its maps are immutable.
type counts struct {
	leasesLost   atomic.Int64
	actions      map[string]*actionCounts
	stepFailures *counter.Set
	runFailures  *counter.Set
}

type actionCounts struct {
	outcomes *counter.Set
	took     *counter.Histogram
}

func newCounts(catalog *action.Catalog) *counts {
	codes := append(run.Codes(), action.InvalidInput, action.TimedOut, expr.CodeInvalid, expr.CodeFailed, expr.CodeCost)
	c := &counts{actions: map[string]*actionCounts{}}
	for _, code := range catalog.Codes() {
		codes = append(codes, code.Name)
	}
	for _, name := range append(catalog.Names(), operations) {
		c.actions[name] = &actionCounts{
			outcomes: counter.NewSet(succeeded, failed, retried, waiting, dropped),
			took: counter.NewDurations(10*time.Microsecond, 100*time.Microsecond, time.Millisecond, 5*time.Millisecond, 25*time.Millisecond, 100*time.Millisecond,
				250*time.Millisecond, 500*time.Millisecond, time.Second, 2500*time.Millisecond, 10*time.Second, time.Minute, 5*time.Minute),
		}
	}
	c.stepFailures, c.runFailures = counter.NewSet(codes...), counter.NewSet(codes...)
	return c
}

// Stats returns the current statistics.
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

// operations stands for the operations of all integrations, which are too many to count
// one by one.
const operations = "integrations"

// of returns the counts of the action of a step, nil if it is a block.
func (c *counts) of(step *run.Step) *actionCounts {
	if of := c.actions[step.Type]; of != nil || !strings.Contains(step.Type, ".") {
		return of
	}
	return c.actions[operations]
}

// countExecution counts the execution of an action and its duration.
func (d *driver) countExecution(step *run.Step, took time.Duration) {
	if of := d.engine.counts.of(step); of != nil && !d.isTest {
		of.took.ObserveDuration(took)
	}
	d.countOutcome(step)
}

// countOutcome counts the outcome of an attempt, including one that failed before its
// action was called.
func (d *driver) countOutcome(step *run.Step) {
	of := d.engine.counts.of(step)
	if of == nil || d.isTest {
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

// countDropped counts an execution whose result is dropped.
func (d *driver) countDropped(r result) {
	if of := d.engine.counts.of(r.at.step()); of != nil {
		of.outcomes.Add(dropped)
		of.took.ObserveDuration(r.took)
	}
}
