package trigger

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/event"
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
// own workflow unless that workflow is named. Events that belong to no workflow are
// not restricted by the workflows.
func (s Subscription) Wants(e event.Event) bool {
	if !slices.Contains(s.Events, string(e.Type)) {
		return false
	}
	if e.WorkflowID == "" {
		return true
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
