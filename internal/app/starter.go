package app

import (
	"context"

	"github.com/stepmill/stepmill/internal/action/subrun"
	"github.com/stepmill/stepmill/internal/run"
)

// childStarter lets steps start runs. It goes through the server because the
// actions are created before the run service.
type childStarter struct{ server *Server }

// StartChild implements subrun.Starter.
func (s childStarter) StartChild(ctx context.Context, c subrun.Child) (string, error) {
	return s.server.runner.runs.StartChild(ctx, run.Child{
		WorkspaceID: c.Workspace, WorkflowID: c.WorkflowID, Payload: c.Payload, Files: c.Files, Depth: c.Run.Depth + 1, Began: c.Began,
		Parent: run.Parent{RunID: c.Run.ID, StepID: c.Run.Path, Waits: c.Waited},
	})
}
