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
	// *connection.BrokenError if the connection has to be reconnected first.
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
)

// waitForConnection suspends a step until its connection works again. The step fails
// if it must not wait or has waited long enough.
func (s *runState) waitForConnection(p stepRef, broken *connection.BrokenError) {
	step, now, awaits := p.step(), clock.Now(), action.AwaitsConnection(broken.Name)
	deadline := now.Add(connectionPatience)
	if until := step.Until(); step.Awaits == awaits && until != nil {
		deadline = *until
	}
	if p.compiled().OnBrokenConnection == workflow.FailIfBroken || !now.Before(deadline) {
		s.fail(p, s.failureOf(step, &action.Failure{Code: connection.CodeBroken, Message: broken.Error()}))
		return
	}
	waited := connectionPatience - deadline.Sub(now)
	next := now.Add(min(max(waited/2, firstConnectionCheck), lastConnectionCheck))
	if next.After(deadline) {
		next = deadline
	}
	s.wait(step, action.Wait{
		Until: next, Deadline: deadline, Awaits: awaits, Reason: fmt.Sprintf("the connection %q has to be reconnected", broken.Name),
	})
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
	now := clock.Now()
	for p := range s.root.unsettled() {
		if step := p.step(); step.Status == run.StepWaiting && awaitsConnection(step) && step.Error == nil {
			step.WakeAt = &now
		}
	}
}
