package run

import (
	"time"

	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/uid"
)

// SampleEvent returns an event of a run that does not exist, to test a webhook.
func SampleEvent(kind event.Type, workspaceID string, at time.Time) (event.Event, error) {
	const (
		workflowName = "Sample workflow"
		took         = 1250 * time.Millisecond
	)
	r := Run{
		WorkspaceID: workspaceID, WorkflowID: uid.At(uid.Workflow, at), Status: Running,
		Trigger: Trigger{Type: Manual}, StartedAt: at,
	}
	if kind != event.RunStarted {
		r.StartedAt = at.Add(-took)
	}
	r.ID = uid.At(uid.Run, r.StartedAt)
	switch kind {
	case event.RunSucceeded:
		r.Status = Succeeded
	case event.RunCancelled:
		r.Status = Cancelled
	case event.RunFailed:
		r.Status = Failed
		r.Error = &Failure{Code: "http_error", Message: "https://api.example.com/orders returned 503 Service Unavailable", StepID: "fetch_orders"}
	default:
		return StartedEvent(r, workflowName)
	}
	return EndedEvent(r, workflowName, at)
}
