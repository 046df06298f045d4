package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
)

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

func (s *Server) createWorkspace(ctx context.Context, in *createWorkspaceRequest) (*reply, error) {
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
	w, key, err := s.Auth.CreateWorkspace(ctx, actorOf(ctx), wanted)
	if err != nil {
		return nil, err
	}
	return ok(createdWorkspaceBody{showWorkspace(w), key}).withHeader("Location", "/v1/workspaces/"+w.ID), nil
}

func (s *Server) listWorkspaces(ctx context.Context, in *page) (*reply, error) {
	return paginate(ctx, s, *in, []string{"workspaces"},
		func(p paging.Request) (paging.Page[auth.Workspace], error) {
			return s.Auth.ListWorkspaces(ctx, actorOf(ctx), p)
		},
		showWorkspace)
}

type workspaceRequest struct {
	ID string `path:"id"`
}

func (s *Server) getWorkspace(ctx context.Context, in *workspaceRequest) (*reply, error) {
	w, err := s.Auth.GetWorkspace(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return ok(showWorkspace(w)), nil
}

type updateWorkspaceRequest struct {
	ID   string `path:"id"`
	Body struct {
		Name              *string    `json:"name"`
		Plan              *auth.Plan `json:"plan"`
		RequestsPerMinute *int       `json:"requests_per_minute"`
	} `body:"required"`
}

func (s *Server) updateWorkspace(ctx context.Context, in *updateWorkspaceRequest) (*reply, error) {
	w, err := s.Auth.UpdateWorkspace(ctx, actorOf(ctx), in.ID, auth.WorkspacePatch(in.Body))
	if err != nil {
		return nil, err
	}
	return ok(showWorkspace(w)), nil
}
