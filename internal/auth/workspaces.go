package auth

import (
	"context"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

// NewWorkspace is the input for creating a workspace.
type NewWorkspace struct {
	Name              string
	Plan              Plan
	RequestsPerMinute *int
	// Show is called with the value of the first admin key before the workspace is
	// stored; nil: nothing is.
	Show func(Workspace, string) error
}

// WorkspacePatch is a change to a workspace. Nil fields are left unchanged.
type WorkspacePatch struct {
	Name              *string
	Plan              *Plan
	RequestsPerMinute *int
}

// Bootstrap creates the first workspace of a new installation, with an admin key.
// It returns the value of the key, or "" if there already is a workspace.
func (s *Service) Bootstrap(ctx context.Context) (string, error) {
	now := clock.Now()
	workspace := Workspace{
		ID: uid.At(uid.Workspace, now), Name: "Default", Plan: Enterprise,
		RequestsPerMinute: FirstRequestsPerMinute, First: true, CreatedAt: now, UpdatedAt: now,
	}
	actor := Actor{Workspace: workspace, Type: audit.ActorSystem}
	key, token, err := makeKey(actor, NewKey{Name: "First admin key", Scopes: []string{string(Admin)}})
	if err != nil {
		return "", err
	}
	installed, err := s.store.Install(ctx, Installation{
		Workspace: workspace, DataKey: s.vault.NewDataKey(workspace.ID), KeyCheck: s.vault.Check(), AdminKey: key,
		Entry: actor.AuditEntry("workspace.created", "workspace", workspace.ID, nil),
	})
	if err != nil || !installed {
		return "", err
	}
	return token, nil
}

// CreateWorkspace creates a workspace and returns it with the value of its first
// admin key. It requires an operator.
func (s *Service) CreateWorkspace(ctx context.Context, actor Actor, in NewWorkspace) (Workspace, string, error) {
	if !actor.IsOperator() {
		return Workspace{}, "", notOperator()
	}
	name, err := fault.Name("/name", in.Name, maxNameLength)
	if err != nil {
		return Workspace{}, "", err
	}
	if in.Plan == "" {
		in.Plan = Free
	}
	rate, err := checkPlan(in.Plan, in.RequestsPerMinute)
	if err != nil {
		return Workspace{}, "", err
	}
	now := clock.Now()
	workspace := Workspace{
		ID: uid.At(uid.Workspace, now), Name: name, Plan: in.Plan, RequestsPerMinute: rate, CreatedAt: now, UpdatedAt: now,
	}
	creator := actor
	creator.Workspace = workspace
	key, token, err := makeKey(creator, NewKey{Name: "First admin key", Scopes: []string{string(Admin)}})
	if err != nil {
		return Workspace{}, "", err
	}
	if in.Show != nil {
		if err := in.Show(workspace, token); err != nil {
			return Workspace{}, "", err
		}
	}
	entry := actor.AuditEntry("workspace.created", "workspace", workspace.ID, map[string]any{"name": name, "plan": in.Plan})
	ownerID := ""
	if actor.Type == audit.ActorUser {
		ownerID = actor.ID
	}
	if err := s.store.InsertWorkspace(ctx, workspace, s.vault.NewDataKey(workspace.ID), key, ownerID, entry); err != nil {
		return Workspace{}, "", err
	}
	return workspace, token, nil
}

// checkPlan returns the rate limit for a plan: the fixed one of the plan, or the
// given one for enterprise.
func checkPlan(plan Plan, rate *int) (int, error) {
	switch {
	case !plan.Known():
		return 0, fault.Field("/plan", "must be one of free, pro, enterprise")
	case plan != Enterprise && rate != nil:
		return 0, fault.Field("/requests_per_minute", "is fixed by the %s plan; only enterprise workspaces can set it", plan)
	case plan != Enterprise:
		return plan.RequestsPerMinute(), nil
	case rate == nil:
		return 0, fault.Field("/requests_per_minute", "is required for the enterprise plan")
	case *rate < 1 || *rate > MaxRequestsPerMinute:
		return 0, fault.Field("/requests_per_minute", "must be between 1 and %d", MaxRequestsPerMinute)
	}
	return *rate, nil
}

// GetWorkspace returns a workspace. Actors other than operators can only read
// their own.
func (s *Service) GetWorkspace(ctx context.Context, actor Actor, id string) (Workspace, error) {
	if !uid.Valid(uid.Workspace, id) || !actor.IsOperator() && id != actor.Workspace.ID {
		return Workspace{}, workspaceNotFound(id)
	}
	workspace, err := s.store.Workspace(ctx, id)
	return fault.Found(workspace, err, workspaceNotFound, id)
}

// ListWorkspaces lists all workspaces for an operator, and the actor's own for
// others.
func (s *Service) ListWorkspaces(ctx context.Context, actor Actor, page paging.Request) (paging.Page[Workspace], error) {
	if actor.IsOperator() {
		return s.store.Workspaces(ctx, page)
	}
	own, err := s.GetWorkspace(ctx, actor, actor.Workspace.ID)
	if err != nil {
		return paging.Page[Workspace]{}, err
	}
	return paging.Page[Workspace]{Items: []Workspace{own}}, nil
}

// UpdateWorkspace changes the name, plan or rate limit of a workspace. It requires
// an operator.
func (s *Service) UpdateWorkspace(ctx context.Context, actor Actor, id string, patch WorkspacePatch) (Workspace, error) {
	for {
		was, err := s.GetWorkspace(ctx, actor, id)
		if err != nil {
			return Workspace{}, err
		}
		if !actor.IsOperator() {
			return Workspace{}, notOperator()
		}
		now, err := patch.apply(was)
		if err != nil {
			return Workspace{}, err
		}
		now.UpdatedAt = clock.NowAfter(was.UpdatedAt)
		details := map[string]any{"plan": now.Plan, "requests_per_minute": now.RequestsPerMinute, "name": now.Name}
		entry := actor.AuditEntry("workspace.updated", "workspace", id, details)
		updated, err := s.store.UpdateWorkspace(ctx, now, was.UpdatedAt, entry)
		if err != nil {
			return Workspace{}, err
		}
		if updated {
			s.cache.Drop(func(entry cachedKey) bool { return entry.workspace.ID == id })
			return now, nil
		}
	}
}

func (p WorkspacePatch) apply(w Workspace) (Workspace, error) {
	if p.Name != nil {
		name, err := fault.Name("/name", *p.Name, maxNameLength)
		if err != nil {
			return w, err
		}
		w.Name = name
	}
	if p.Plan == nil && p.RequestsPerMinute == nil {
		return w, nil
	}
	rate, was := p.RequestsPerMinute, w.Plan
	if p.Plan != nil {
		w.Plan = *p.Plan
	}
	if rate == nil && was == Enterprise && w.Plan == Enterprise {
		rate = &w.RequestsPerMinute
	}
	var err error
	w.RequestsPerMinute, err = checkPlan(w.Plan, rate)
	return w, err
}

func workspaceNotFound(id string) error {
	return fault.New(fault.WorkspaceNotFound, "there is no workspace %q", id)
}

func notOperator() error {
	return fault.New(fault.InsufficientScope, "this requires the scope admin in the installation's first workspace")
}
