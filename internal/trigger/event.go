package trigger

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/event"
)

// EventFilter lists the events that a trigger fires on.
type EventFilter struct {
	WorkflowID string // the workflow of the trigger
	ID         string
	Events     []string `json:"events"`
	Workflows  []string `json:"workflows"`
}

// ParseEventFilter parses the events from the definition of a trigger.
func ParseEventFilter(workflowID, id string, spec []byte) (EventFilter, error) {
	f := EventFilter{WorkflowID: workflowID, ID: id}
	err := json.Unmarshal(spec, &f)
	f.WorkflowID, f.ID = workflowID, id
	return f, err
}

// Wants reports whether the trigger fires on an event. It ignores events of its
// own workflow unless that workflow is named. Events that belong to no workflow are
// not restricted by the workflows.
func (f EventFilter) Wants(e event.Event) bool {
	if !slices.Contains(f.Events, string(e.Type)) {
		return false
	}
	if e.WorkflowID == "" {
		return true
	}
	if f.Workflows == nil {
		return e.WorkflowID != f.WorkflowID
	}
	return slices.Contains(f.Workflows, e.WorkflowID)
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
	SettlePendingEvent(ctx context.Context, o PendingEvent, next *time.Time, notFired Note) error
}
