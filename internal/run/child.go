package run

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/uid"
)

// Child is a request of a step to start a run.
type Child struct {
	WorkspaceID string
	WorkflowID  string
	Payload     json.RawMessage
	Files       []string // the JSON pointers of the references to files inside Payload
	Parent      Parent
	// Depth is the number of ancestors of the new run.
	Depth int
	// Began is when the step began. The id of the run is derived from it and from the
	// parent, so that repeated requests start only one run.
	Began time.Time
}

// SubRun is the trigger type of runs that are started by a step of another run.
const SubRun = "run"

// StartChild starts the run of a step, unless it already exists, and returns its
// id.
func (s *Service) StartChild(ctx context.Context, c Child) (string, error) {
	id := uid.Derived(uid.Run, c.Began, c.Parent.RunID+"/"+c.Parent.StepID)
	// The checks for a new run do not apply to one that already exists.
	if there, err := s.store.RunProgress(ctx, c.WorkspaceID, id); err != nil || there != nil {
		return id, err
	}
	child := Start{Run: Run{
		ID: id, WorkspaceID: c.WorkspaceID, WorkflowID: c.WorkflowID,
		Trigger: Trigger{Type: SubRun, ID: c.Parent.RunID, Payload: c.Payload, Files: c.Files}, Parent: &c.Parent, Depth: c.Depth,
	}}
	_, err := s.startPrepared(ctx, func() (*Prepared, error) { return s.prepared(ctx, child, false) })
	if errors.Is(err, ErrStarted) {
		err = nil
	}
	return id, err
}
