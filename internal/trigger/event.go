package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Subscription lists the events that a trigger fires on.
type Subscription struct {
	WorkflowID string // the workflow of the trigger
	ID         string
	Events     []string `json:"events"`
	Workflows  []string `json:"workflows"`
}

// ParseSubscription parses the events from the definition of a trigger.
func ParseSubscription(workflowID, id string, spec []byte) (Subscription, error) {
	s := Subscription{WorkflowID: workflowID, ID: id}
	err := json.Unmarshal(spec, &s)
	s.WorkflowID, s.ID = workflowID, id
	return s, err
}

// Wants reports whether the trigger fires on an event. It ignores events of its
// own workflow unless that workflow is named.
func (s Subscription) Wants(e event.Event) bool {
	if !slices.Contains(s.Events, string(e.Type)) {
		return false
	}
	if s.Workflows == nil {
		return e.WorkflowID != s.WorkflowID
	}
	return slices.Contains(s.Workflows, e.WorkflowID)
}

// PendingEvent is an event for which a trigger has yet to start a run. It is
// written with the event and deleted when the run starts.
type PendingEvent struct {
	Of    Trigger
	Event event.Event
}

// PendingEventStore stores pending events.
type PendingEventStore interface {
	// DuePendingEvents returns the due events, earliest first.
	DuePendingEvents(ctx context.Context, now time.Time, limit int) ([]PendingEvent, error)
	// NextPendingEvent returns the earliest due time of all pending events.
	NextPendingEvent(ctx context.Context) (*time.Time, error)
	// SettlePendingEvent postpones an event to next, or drops it if next is nil,
	// and records why.
	SettlePendingEvent(ctx context.Context, o PendingEvent, next *time.Time, idle Note) error
}

// EventStarter starts runs for events.
type EventStarter struct {
	*Ticker[PendingEvent]
	store PendingEventStore
	runs  Runs
}

// NewEventStarter returns an EventStarter on a store.
func NewEventStarter(store PendingEventStore, runs Runs, log *slog.Logger) *EventStarter {
	r := &EventStarter{store: store, runs: runs}
	r.Ticker = newTicker(dueWork[PendingEvent]{name: workflow.EventTrigger, due: store.DuePendingEvents, next: store.NextPendingEvent, handle: r.start}, log)
	return r
}

// start starts the run for a pending event, or records why it cannot.
func (r *EventStarter) start(ctx context.Context, p PendingEvent, now time.Time) error {
	t, e := p.Of, p.Event
	depth := e.Depth
	if e.RunID != "" {
		depth++ // one below the run that caused the event
	}
	_, err := r.runs.Fire(ctx, run.Firing{
		WorkspaceID: t.WorkspaceID, WorkflowID: t.WorkflowID, Depth: depth,
		Trigger: run.Trigger{Type: t.Type, ID: t.ID, Payload: e.Body},
		Fire:    run.Fire{At: now, EventID: e.ID},
	})
	notFired := permanentRejection(err, now)
	switch {
	case errors.Is(err, run.ErrNotDue):
		return r.store.SettlePendingEvent(ctx, p, nil, Note{At: now, Code: CodeNotActive, Message: "the event " + string(e.Type) + " did not start a run: the workflow was no longer active"})
	case obsolete(err):
		return nil
	case notFired == nil:
		return err
	}
	return r.store.SettlePendingEvent(ctx, p, retryAt(err, e.At, now), *notFired)
}

// maxEventWait limits how long an event waits for space in the queue.
const maxEventWait = 24 * time.Hour

// retryAt returns when to retry a rejected event: the longer it has waited, the
// later. It returns nil for errors that are permanent.
func retryAt(err error, since, now time.Time) *time.Time {
	waited := now.Sub(since)
	if !fault.Is(err, fault.RunQueueFull) || waited > maxEventWait {
		return nil
	}
	next := now.Add(min(max(waited/2, time.Second), 5*time.Minute))
	return &next
}
