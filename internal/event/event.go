// Package event owns what happened: the names of events and the immutable
// envelope that is stored with each state change and later sent to webhooks.
// The data of an event is made by the package whose state changed.
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
)

// Types lists every event in the order of the documentation.
func Types() []Type {
	return []Type{RunStarted, RunSucceeded, RunFailed, RunCancelled, WorkflowActivated, WorkflowPaused}
}

// Known tells whether a name is that of an event.
func Known(name string) bool { return slices.Contains(Types(), Type(name)) }

// Event is an event as it is stored and sent: Body is never changed, so that
// every attempt to deliver it sends the same bytes.
type Event struct {
	ID          string
	WorkspaceID string
	Type        Type
	WorkflowID  string
	RunID       string
	At          time.Time
	// Depth is how many runs stand above the run.
	Depth int
	// Draft says that the run is one of a draft: no trigger fires on it.
	Draft bool
	Body  []byte
}

type envelope struct {
	ID        string `json:"id"`
	Event     Type   `json:"event"`
	Timestamp string `json:"timestamp"`
	Data      any    `json:"data"`
}

// Subject says whom an event is about.
type Subject struct {
	WorkspaceID, WorkflowID, RunID string
	Depth                          int  // of the run
	Draft                          bool // the run is one of a draft
}

// New makes an event. Data must be a value that encoding/json accepts.
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
