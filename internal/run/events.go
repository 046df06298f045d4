package run

import (
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
)

// maxEventError keeps events small; the run has the full text.
const maxEventError = 2000

// StartedEvent returns the event of a run that starts.
func StartedEvent(r Run, workflowName string) (event.Event, error) {
	return event.New(event.RunStarted, subject(r), r.StartedAt, newEventData(r, workflowName))
}

// EndedEvent returns the event of a run that has reached its final status.
func EndedEvent(r Run, workflowName string, at time.Time) (event.Event, error) {
	data := newEventData(r, workflowName)
	duration := clock.Millis(r.StartedAt, at)
	data.FinishedAt, data.DurationMS = clock.FormatPtr(&at), &duration
	kind := event.RunSucceeded
	switch r.Status {
	case Cancelled:
		kind = event.RunCancelled
	case Failed:
		kind = event.RunFailed
		text, step := failureText(r.Error)
		data.Error, data.FailedStepID = &text, step
	}
	return event.New(kind, subject(r), at, data)
}

func failureText(f *Failure) (string, *string) {
	if f == nil {
		return "The run failed.", nil
	}
	text := Clip(f.Message, maxEventError)
	if f.StepID == "" {
		return text, nil
	}
	return text, &f.StepID
}

// Clip cuts a text to at most limit bytes without splitting a character.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && text[limit]&0xC0 == 0x80 {
		limit--
	}
	return text[:limit]
}

func newEventData(r Run, workflowName string) event.RunData {
	data := event.RunData{
		RunID: r.ID, WorkflowID: r.WorkflowID, WorkflowName: workflowName, Status: string(r.Status),
		Trigger: event.RunTrigger{Type: r.Trigger.Type}, Draft: r.Draft, StartedAt: clock.Format(r.StartedAt),
	}
	if r.Trigger.ID != "" {
		data.Trigger.ID = &r.Trigger.ID
	}
	return data
}

func subject(r Run) event.Subject {
	return event.Subject{WorkspaceID: r.WorkspaceID, WorkflowID: r.WorkflowID, RunID: r.ID, Depth: r.Depth, Draft: r.Draft}
}
