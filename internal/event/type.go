package event

import (
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

// Declaration declares an event type.
type Declaration struct {
	Type Type
	// When says in a sentence when the event happens, Note what else there is to know
	// about it, as Markdown.
	When, Note string
	// Schema is the name of the schema of its data in the OpenAPI document.
	Schema string
	// sample returns what a made-up event is about, and its data.
	sample func(at time.Time) (Subject, any)
}

// Declarations lists all event types. The lists of them in the OpenAPI document, the
// documentation and the dashboard are generated in this order.
func Declarations() []Declaration {
	return []Declaration{
		{RunStarted, "A run begins.", "Every run emits it, whatever started the run.", "RunStartedData", sampleRun("running")},
		{RunSucceeded, "A run succeeds.", "", "RunFinishedData", sampleRun("succeeded")},
		{RunFailed, "A run fails.", "By then, all retries of its steps are exhausted.", "RunFailedData", sampleRun("failed")},
		{RunCancelled, "A run is cancelled.", "A cancelled run does not emit `run.failed`.", "RunFinishedData", sampleRun("cancelled")},
		{WorkflowActivated, "A workflow becomes active.", "", "WorkflowStateData", sampleWorkflow("active", "draft")},
		{WorkflowPaused, "A workflow is paused.", "", "WorkflowStateData", sampleWorkflow("paused", "active")},
		{ConnectionBroken, "A connection has to be reconnected.", "The event is sent once, when the connection becomes `needs_reconnect`.", "ConnectionBrokenData", sampleBroken},
		{
			ConnectionEnding, "The consent for a connection ends soon.",
			"The event is sent once, 7 days before the end, or later if the consent has not lived long, so that somebody reconnects it in time.",
			"ConnectionEndingData", sampleEnding,
		},
	}
}

// Types lists all event types in the order of the documentation.
func Types() []Type {
	var out []Type
	for _, d := range Declarations() {
		out = append(out, d.Type)
	}
	return out
}

// Known reports whether name is an event type.
func Known(name string) bool { return slices.Contains(Types(), Type(name)) }

// Sample returns an event of something that does not exist, for testing webhooks and
// triggers.
func Sample(kind Type, workspaceID string, at time.Time) (Event, error) {
	for _, d := range Declarations() {
		if d.Type == kind {
			about, data := d.sample(at)
			about.WorkspaceID = workspaceID
			return New(kind, about, at, data)
		}
	}
	return Event{}, fmt.Errorf("there is no event type %q", kind)
}

const sampleWorkflowName = "Sample workflow"

func sampleRun(status string) func(at time.Time) (Subject, any) {
	return func(at time.Time) (Subject, any) {
		data := RunData{
			WorkflowID: uid.At(uid.Workflow, at), WorkflowName: sampleWorkflowName, Status: status, Trigger: RunTrigger{Type: "manual"},
		}
		started := at
		if status != "running" {
			started = at.Add(-1250 * time.Millisecond)
			data.FinishedAt, data.DurationMS = clock.FormatPtr(&at), new(clock.Millis(started, at))
		}
		if status == "failed" {
			data.Error, data.FailedStepID = new("https://api.example.com/orders returned 503 Service Unavailable"), new("fetch_orders")
		}
		data.RunID, data.StartedAt = uid.At(uid.Run, started), clock.Format(started)
		return Subject{WorkflowID: data.WorkflowID, RunID: data.RunID}, data
	}
}

func sampleWorkflow(state, previous string) func(at time.Time) (Subject, any) {
	return func(at time.Time) (Subject, any) {
		id := uid.At(uid.Workflow, at)
		return Subject{WorkflowID: id}, WorkflowData{
			WorkflowID: id, WorkflowName: sampleWorkflowName, State: state, PreviousState: previous, Version: 3,
		}
	}
}

func sampleBroken(at time.Time) (Subject, any) {
	return Subject{}, ConnectionBrokenData{
		Connection: sampleConnection(at), Problem: "the service rejected the request for a token: invalid_grant (token revoked)",
	}
}

func sampleEnding(at time.Time) (Subject, any) {
	return Subject{}, ConnectionEndingData{Connection: sampleConnection(at), ConsentEndsAt: clock.Format(at.AddDate(0, 0, 7))}
}

func sampleConnection(at time.Time) Connection {
	return Connection{ID: uid.At(uid.Connection, at), Name: "team-slack", Integration: new("slack")}
}
