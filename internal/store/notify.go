package store

import (
	"time"

	"github.com/stepmill/stepmill/internal/run"
)

// Notify holds callbacks that the store calls after a commit. They must not
// block.
type Notify struct {
	// Wake passes on a run that has work to do.
	Wake func(run.Wake)
	// AnswerArrived is called when an answer arrived for a run that this or
	// another node is executing.
	AnswerArrived func(runID string)
	// Changed is called when steps of a run were written.
	Changed func(runID string)
	// HeldBack is called when a new run waits for its concurrency limit.
	HeldBack func(runID string)
	// Started and Ended are called when a run starts and ends.
	Started func(workspaceID string)
	Ended   func(run.Completion)
	// Recorded is called when an event of a workspace was written.
	Recorded func(workspaceID string)
	// Deliverable is called when there is a delivery to send to a webhook.
	Deliverable func()
	// Scheduled is called when a trigger of the given type was scheduled,
	// possibly earlier than all others.
	Scheduled func(kind string, at time.Time)
	// SubscriptionDue is called when there is something to do for a subscription at a
	// service.
	SubscriptionDue func(at time.Time)
	// AppCalled is called when calls for OAuth apps are to be handed out at a time.
	AppCalled func(at time.Time)
	// EventPending is called when there is an event for a trigger to fire on.
	EventPending func(at time.Time)
	// WorkflowDeleted is called when the runs of a workflow became void.
	WorkflowDeleted func(workflowID string)
	// WorkspaceCreated is called when a workspace after the first was created.
	WorkspaceCreated func()
}

// complete returns n with functions that do nothing in place of those that are nil.
func (n Notify) complete() Notify {
	if n.Wake == nil {
		n.Wake = func(run.Wake) {}
	}
	if n.AnswerArrived == nil {
		n.AnswerArrived = func(string) {}
	}
	if n.Changed == nil {
		n.Changed = func(string) {}
	}
	if n.HeldBack == nil {
		n.HeldBack = func(string) {}
	}
	if n.Started == nil {
		n.Started = func(string) {}
	}
	if n.Ended == nil {
		n.Ended = func(run.Completion) {}
	}
	if n.Recorded == nil {
		n.Recorded = func(string) {}
	}
	if n.Deliverable == nil {
		n.Deliverable = func() {}
	}
	if n.AppCalled == nil {
		n.AppCalled = func(time.Time) {}
	}
	if n.SubscriptionDue == nil {
		n.SubscriptionDue = func(time.Time) {}
	}
	if n.Scheduled == nil {
		n.Scheduled = func(string, time.Time) {}
	}
	if n.EventPending == nil {
		n.EventPending = func(time.Time) {}
	}
	if n.WorkflowDeleted == nil {
		n.WorkflowDeleted = func(string) {}
	}
	if n.WorkspaceCreated == nil {
		n.WorkspaceCreated = func() {}
	}
	return n
}
