package trigger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Sample is what a trigger is tried out with; nil leaves a part to the trigger.
type Sample struct {
	Payload json.RawMessage
	Headers json.RawMessage
	Query   json.RawMessage
}

// Test starts a run as if the trigger had fired, with the sample or with one
// that is made up. The run is marked as a test; the trigger stays as it is.
func (s *Service) Test(ctx context.Context, actor auth.Actor, workflowID, id string, sample Sample, watch bool) (run.Started, error) {
	t, err := s.find(ctx, actor, workflowID, id)
	if err != nil {
		return run.Started{}, err
	}
	in := run.Trigger{Type: t.Type, ID: t.ID, Payload: sample.Payload, Headers: sample.Headers, Query: sample.Query}
	if in.Payload == nil {
		if in.Payload, err = madeUp(actor.Workspace.ID, t, clock.Now()); err != nil {
			return run.Started{}, err
		}
	}
	return s.runs.Try(ctx, actor, workflowID, in, watch)
}

// madeUp is a payload such as the trigger has when it fires.
func madeUp(workspaceID string, t workflow.Trigger, now time.Time) (json.RawMessage, error) {
	switch t.Type {
	case workflow.ScheduleTrigger:
		return tick(now)
	case workflow.PollTrigger:
		return nil, fault.Field("/payload", "give an item to try a poll out with")
	case workflow.EventTrigger:
		e, err := SampleEvent(event.Type(t.Events[0]), workspaceID, now)
		return e.Body, err
	}
	return nil, nil
}

// SampleEvent lets the package that makes an event make a sample of it.
func SampleEvent(kind event.Type, workspaceID string, at time.Time) (event.Event, error) {
	if kind == event.WorkflowActivated || kind == event.WorkflowPaused {
		return workflow.SampleEvent(kind, workspaceID, at)
	}
	return run.SampleEvent(kind, workspaceID, at)
}

// tick is the payload of a schedule.
func tick(at time.Time) (json.RawMessage, error) {
	return json.Marshal(map[string]string{"scheduled_at": clock.Format(at)})
}
