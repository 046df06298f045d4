package app

import (
	"time"

	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// sampleEvent lets the package that makes an event make a sample of it.
func sampleEvent(kind event.Type, workspaceID string, at time.Time) (event.Event, error) {
	switch kind {
	case event.WorkflowActivated, event.WorkflowPaused:
		return workflow.SampleEvent(kind, workspaceID, at)
	}
	return run.SampleEvent(kind, workspaceID, at)
}
