package run

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/uid"
)

// Child asks for a run on behalf of a step of another run.
type Child struct {
	WorkspaceID string
	WorkflowID  string
	Payload     json.RawMessage
	Parent      Parent
	// Depth is how many runs stand above the new one.
	Depth int
	// Began is when the step began. Together with the parent it makes the id of
	// the run: however often it is asked for, it is started once.
	Began time.Time
}

// SubRun is the type of a trigger that is a step of another run.
const SubRun = "run"

// StartChild starts the run of a step, unless it was started before, and
// returns its id.
func (s *Service) StartChild(ctx context.Context, c Child) (string, error) {
	id := uid.Derived(uid.Run, c.Began, c.Parent.RunID+"/"+c.Parent.StepID)
	// What may refuse a new run says nothing about one that is there.
	if there, err := s.store.RunProgress(ctx, c.WorkspaceID, id); err != nil || there != nil {
		return id, err
	}
	_, err := s.begin(ctx, Start{Run: Run{
		ID: id, WorkspaceID: c.WorkspaceID, WorkflowID: c.WorkflowID,
		Trigger: Trigger{Type: SubRun, ID: c.Parent.RunID, Payload: c.Payload}, Parent: &c.Parent, Depth: c.Depth,
	}}, false)
	if errors.Is(err, ErrStarted) {
		err = nil
	}
	return id, err
}
