package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
)

type workspaces struct {
	auth    *auth.Service
	cursors *paging.Codec
}

type workspaceBody struct {
	ID                string    `json:"id"`
	Name              string    `json:"name"`
	Plan              auth.Plan `json:"plan"`
	RequestsPerMinute int       `json:"requests_per_minute"`
	CreatedAt         string    `json:"created_at"`
	UpdatedAt         string    `json:"updated_at"`
}

type createdWorkspaceBody struct {
	workspaceBody
	APIKey string `json:"api_key"`
}

func showWorkspace(w auth.Workspace) workspaceBody {
	return workspaceBody{w.ID, w.Name, w.Plan, w.RequestsPerMinute, clock.Format(w.CreatedAt), clock.Format(w.UpdatedAt)}
}

type createWorkspaceRequest struct {
	Body struct {
		Name              *string    `json:"name"`
		Plan              *auth.Plan `json:"plan"`
		RequestsPerMinute *int       `json:"requests_per_minute"`
	} `body:"required"`
}

func (h *workspaces) create(ctx context.Context, tx txn.Tx, in *createWorkspaceRequest) (*transport.Reply, error) {
	switch {
	case in.Body.Name == nil:
		return nil, fault.Field("/name", "is required")
	case in.Body.Plan != nil && !in.Body.Plan.Known():
		return nil, fault.Field("/plan", "must be one of free, pro, enterprise")
	}
	wanted := auth.NewWorkspace{Name: *in.Body.Name, RequestsPerMinute: in.Body.RequestsPerMinute}
	if in.Body.Plan != nil {
		wanted.Plan = *in.Body.Plan
	}
	w, key, err := h.auth.In(tx).CreateWorkspace(ctx, transport.Actor(ctx), wanted)
	if err != nil {
		return nil, err
	}
	return transport.OK(createdWorkspaceBody{showWorkspace(w), key}).WithHeader("Location", "/v1/workspaces/"+w.ID), nil
}

func (h *workspaces) list(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, *in, []string{"workspaces"},
		func(p paging.Request) (paging.Page[auth.Workspace], error) {
			return h.auth.ListWorkspaces(ctx, transport.Actor(ctx), p)
		},
		showWorkspace)
}

func (h *workspaces) get(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	w, err := h.auth.GetWorkspace(ctx, transport.Actor(ctx), in.ID)
	return transport.Respond(showWorkspace, w, err)
}

type updateWorkspaceRequest struct {
	ID   string `path:"id"`
	Body struct {
		Name              *string    `json:"name"`
		Plan              *auth.Plan `json:"plan"`
		RequestsPerMinute *int       `json:"requests_per_minute"`
	} `body:"required"`
}

func (h *workspaces) update(ctx context.Context, in *updateWorkspaceRequest) (*transport.Reply, error) {
	w, err := h.auth.UpdateWorkspace(ctx, transport.Actor(ctx), in.ID, auth.WorkspacePatch(in.Body))
	return transport.Respond(showWorkspace, w, err)
}
