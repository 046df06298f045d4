package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Connections opens the connections of steps.
type Connections interface {
	// Use calls a function with a connection. If the server rejects a credential that
	// can be renewed, it renews it and calls the function once more. It returns a
	// *connection.BrokenError if the connection has to be reconnected first, and a
	// *connection.StoreError if the store failed before the function had an effect.
	Use(ctx context.Context, workspaceID, name string, wait time.Duration, call func(context.Context, action.Connection) error) error
	// Mask returns a masker for the secrets of connections, as far as they exist.
	Mask(ctx context.Context, workspaceID string, names []string) (*mask.Masker, error)
}

const (
	// connectionPatience is how long a step waits for a broken connection.
	connectionPatience = 7 * 24 * time.Hour
	// A waiting step is woken when its connection works again. It also looks by itself:
	// soon, because it may just have missed that, and then less and less often.
	firstConnectionCheck = time.Minute
	lastConnectionCheck  = 6 * time.Hour
	// A step whose connection could not be read or renewed because the store failed tries
	// again after a pause between these, which grows with its attempt.
	firstStoreCheck = time.Second
	lastStoreCheck  = 30 * time.Second
)

// waitForConnection suspends a step until its connection works again. The step fails
// if it must not wait or has waited long enough.
func (s *runState) waitForConnection(p stepRef, broken *connection.BrokenError) {
	step, now, awaits := p.step(), clock.Steady(), action.AwaitsConnection(broken.Name)
	deadline := connectionDeadline(step, awaits, now)
	if p.compiled().OnBrokenConnection == workflow.FailIfBroken || !now.Before(deadline) {
		s.fail(p, s.failureOf(step, &action.Failure{Code: connection.CodeBroken, Message: broken.Error()}))
		return
	}
	left := deadline.Sub(now)
	next := min(max((connectionPatience-left)/2, firstConnectionCheck), lastConnectionCheck)
	s.wait(step, action.Wait{
		For: min(next, left), Longest: left, Awaits: awaits, Reason: fmt.Sprintf("the connection %q has to be reconnected", broken.Name),
	})
}

// retryConnection suspends a step whose connection could not be used because the store
// failed, which is not one of its attempts. The commit of the wait is repeated until the
// store works. The test of a step does not wait.
func (d *driver) retryConnection(p stepRef, failed *connection.StoreError) {
	step, now := p.step(), clock.Steady()
	d.log.Error("the store failed; retrying", "operation", "use a connection", "step", step.Path, "error", failed)
	reason := fmt.Sprintf("the connection %q could not be used because the database failed", failed.Name)
	if d.isTest {
		d.state.fail(p, d.state.failureOf(step, &action.Failure{Code: connection.CodeUnavailable, Message: reason + "; try again"}))
		return
	}
	awaits := action.AwaitsConnection(failed.Name)
	d.state.wait(step, action.Wait{
		For: min(max(now.Sub(clock.Past(step.AttemptAt))/2, firstStoreCheck), lastStoreCheck), Longest: connectionDeadline(step, awaits, now).Sub(now),
		Awaits: awaits, Reason: reason + "; trying again",
	})
}

// connectionDeadline returns how long a step that waits for its connection may do so.
func connectionDeadline(step *run.Step, awaits action.Awaits, now time.Time) time.Time {
	if until := step.Until(); step.Awaits == awaits && until != nil {
		return *until
	}
	return now.Add(connectionPatience)
}

// resume continues a step that has waited for its connection. When its wait would end
// stays known until it gets past the connection.
func (s *runState) resume(step *run.Step) {
	until := step.Until()
	step.Status, step.Deadline, step.WakeAt, step.Reason = run.StepRunning, until, nil, ""
	s.changes.add(step)
}

func awaitsConnection(step *run.Step) bool {
	_, ok := step.Awaits.Connection()
	return ok
}

// checkConnections makes the steps of a run due that wait for a connection.
func (s *runState) checkConnections() {
	now := clock.Steady()
	for p := range s.root.unsettled() {
		if step := p.step(); step.Status == run.StepWaiting && awaitsConnection(step) && step.Error == nil {
			step.WakeAt = &now
		}
	}
}
