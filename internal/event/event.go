// Package event owns events: their types, their data and the immutable envelope that
// is stored with each state change and later sent to webhooks. It does not know when
// events happen: the package whose state changed creates them.
package event

//go:generate go test . -run TestGenerated -update

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/uid"
)

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
