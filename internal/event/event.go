// Package event owns events: their types and the immutable envelope that is
// stored with each state change and later sent to webhooks. The package whose
// state changed provides the data of the event.
package event

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/uid"
)

// Type names a kind of event.
type Type string

// The events that webhooks can subscribe to.
const (
	RunStarted        Type = "run.started"
	RunSucceeded      Type = "run.succeeded"
	RunFailed         Type = "run.failed"
	RunCancelled      Type = "run.cancelled"
	WorkflowActivated Type = "workflow.activated"
	WorkflowPaused    Type = "workflow.paused"
	ConnectionBroken  Type = "connection.broken"
	ConnectionEnding  Type = "connection.ending" // its consent ends soon
)

// Types lists all event types in the order of the documentation.
func Types() []Type {
	return []Type{RunStarted, RunSucceeded, RunFailed, RunCancelled, WorkflowActivated, WorkflowPaused, ConnectionBroken, ConnectionEnding}
}

// Known reports whether name is an event type.
func Known(name string) bool { return slices.Contains(Types(), Type(name)) }

// Event is an event as it is stored and sent. Body never changes, so that every
// delivery attempt sends the same bytes.
type Event struct {
	ID          string
	WorkspaceID string
	Type        Type
	WorkflowID  string
	RunID       string
	At          time.Time
	// Depth is the number of ancestors of the run.
	Depth int
	// Draft marks an event of a draft run. Triggers ignore it.
	Draft bool
	Body  []byte
}

type envelope struct {
	ID        string `json:"id"`
	Event     Type   `json:"event"`
	Timestamp string `json:"timestamp"`
	Data      any    `json:"data"`
}

// Subject identifies the workflow and run that an event is about. An event of a
// workspace has neither.
type Subject struct {
	WorkspaceID, WorkflowID, RunID string
	Depth                          int  // of the run
	Draft                          bool // it is a draft run
}

// New returns an event. Data must be a value that encoding/json can encode.
func New(kind Type, subject Subject, at time.Time, data any) (Event, error) {
	e := Event{
		ID: uid.At(uid.Event, at), Type: kind, At: at,
		WorkspaceID: subject.WorkspaceID, WorkflowID: subject.WorkflowID, RunID: subject.RunID, Depth: subject.Depth, Draft: subject.Draft,
	}
	body, err := json.Marshal(envelope{ID: e.ID, Event: kind, Timestamp: clock.Format(at), Data: data})
	if err != nil {
		return Event{}, fmt.Errorf("encode event %s: %w", kind, err)
	}
	e.Body = body
	return e, nil
}
