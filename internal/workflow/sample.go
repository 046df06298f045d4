package workflow

import (
	"time"

	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/uid"
)

// SampleEvent returns an event of a workflow that does not exist, for testing
// webhooks.
func SampleEvent(kind event.Type, workspaceID string, at time.Time) (event.Event, error) {
	w, was := Workflow{ID: uid.At(uid.Workflow, at), WorkspaceID: workspaceID, Name: "Sample workflow", State: Active, Version: 3}, Draft
	if kind == event.WorkflowPaused {
		w.State, was = Paused, Active
	}
	return stateEvent(kind, w, was, at)
}
