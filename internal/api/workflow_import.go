package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/workflow"
)

type importWorkflowRequest struct {
	Name string         `query:"name"`
	Body workflowImport `body:"required" yaml:"ok" positions:"json"`
}

// workflowImport is a complete workflow. A response of GET is accepted too: fields
// of the original, such as its id, are ignored.
type workflowImport struct {
	workflowPatch
	SourceStale bool             `json:"source_stale"`
	Warnings    []map[string]any `json:"warnings"`
	ID          string           `json:"id"`
	Version     int              `json:"version"`
	CreatedAt   string           `json:"created_at"`
	UpdatedAt   string           `json:"updated_at"`
}

func (h *workflows) prepareImport(ctx context.Context, in *importWorkflowRequest) (workflow.Prepared, error) {
	patch, err := in.Body.fullPatch()
	if err != nil {
		return workflow.Prepared{}, err
	}
	prepared, err := h.workflows.PrepareImport(ctx, transport.Actor(ctx), workflow.Import{Patch: patch, DefaultName: in.Name, AllowStale: in.Body.SourceStale})
	if err != nil && !in.Body.SourceStale { // positions in a stale text would be wrong
		err = in.Body.locate(patch, err)
	}
	return prepared, err
}
