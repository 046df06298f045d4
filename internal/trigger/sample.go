package trigger

import (
	"context"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/run"
)

// Sample is the input for a test of a trigger. Nil parts are made up.
type Sample struct {
	Payload json.RawMessage
	Headers json.RawMessage
	Query   json.RawMessage
	// Files are the ids of files of the workspace, by the member of the payload that
	// refers to each.
	Files map[string]string
}

// PrepareTest prepares a run as if the trigger had fired, with the given or a
// made-up sample. The run is marked as a test; the state of the trigger does not
// change.
func (s *Service) PrepareTest(ctx context.Context, actor auth.Actor, workflowID, id string, sample Sample, watch bool) (*run.Prepared, error) {
	t, err := s.find(ctx, actor, workflowID, id)
	if err != nil {
		return nil, err
	}
	in := run.Trigger{Type: t.Type, ID: t.ID, Payload: sample.Payload, Headers: sample.Headers, Query: sample.Query}
	if kind := s.types.find(t.Type); in.Payload == nil && kind.Sample != nil {
		if in.Payload, err = kind.Sample(actor.Workspace.ID, t, clock.Now()); err != nil {
			return nil, err
		}
	}
	return s.runs.PrepareTest(ctx, actor, workflowID, in, sample.Files, watch)
}
