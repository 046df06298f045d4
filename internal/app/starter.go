package app

import (
	"context"

	"github.com/stepmill/stepmill/internal/action/subrun"
	"github.com/stepmill/stepmill/internal/run"
)

// starter lets steps start runs. The actions are made before the service of
// runs is, hence the way over the server.
type starter struct{ server *Server }

// StartChild implements subrun.Starter.
func (s starter) StartChild(ctx context.Context, c subrun.Child) (string, error) {
	return s.server.runs.StartChild(ctx, run.Child{
		WorkspaceID: c.Workspace, WorkflowID: c.WorkflowID, Payload: c.Payload, Depth: c.Run.Depth + 1, Began: c.Began,
		Parent: run.Parent{RunID: c.Run.ID, StepID: c.Run.Path, Waits: c.Waited},
	})
}
