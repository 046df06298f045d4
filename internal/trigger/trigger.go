// Package trigger owns what starts runs beside requests: the triggers of
// workflows, when they fire, how far they have come, and why one did not fire.
// It does not own what a trigger looks like in a definition (workflow), nor the
// runs that it starts (run).
package trigger

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Trigger is a trigger as it is kept beside its workflow.
type Trigger struct {
	WorkspaceID string
	WorkflowID  string
	ID          string
	Type        string
	// Version is that of the workflow.
	Version int
	// Active says that the workflow is, so that the trigger can fire.
	Active bool
	NextAt *time.Time
	// FiredAt and RunID are of the last time it fired.
	FiredAt *time.Time
	RunID   string
	// Error is what last went wrong, Idle why it last did not fire; Failures is
	// how many went wrong in a row.
	Error    *Note
	Failures int
	Idle     *Note
	// SealedToken is the secret part of the address of a webhook.
	SealedToken []byte
	// State is how far a poll has come.
	State []byte
}

// Note is something worth telling about a trigger.
type Note struct {
	At      time.Time
	Code    string
	Message string
}

// Codes of notes, beside those that refuse the start of a run.
const (
	// CodeMissed says that times passed while nothing could fire.
	CodeMissed = "missed"
	// CodeNotActive says that the workflow was not active any more.
	CodeNotActive = "workflow_not_active"
	// CodeCorrupt says that the definition cannot be read.
	CodeCorrupt = "corrupt_state"
)

// Move takes a trigger that fires by time from one time to the next without
// starting a run. Of is the trigger as it was read: if its time is not that any
// more, nothing changes.
type Move struct {
	Of       Trigger
	Next     *time.Time
	Failures int
	State    []byte // nil: as it is
	Error    *Note
	Idle     *Note
}

// Store keeps triggers. A method is one atomic unit; a pointer result is nil
// when there is no such row, a false result means that nothing was changed.
type Store interface {
	// Triggers lists those of a workflow by id.
	Triggers(ctx context.Context, workspaceID, workflowID string) ([]Trigger, error)
	// TriggerByToken finds the webhook whose token has that hash.
	TriggerByToken(ctx context.Context, hash []byte) (*Trigger, error)
	// DueTriggers reads those of a type whose time has come, the earliest first.
	DueTriggers(ctx context.Context, kind string, now time.Time, limit int) ([]Trigger, error)
	// NextTrigger is the earliest time that any of a type has.
	NextTrigger(ctx context.Context, kind string) (*time.Time, error)
	MoveTrigger(ctx context.Context, m Move) (moved bool, err error)
	// NoteTrigger records what is not nil.
	NoteTrigger(ctx context.Context, of Trigger, failed, idle *Note) error
	// RotateToken gives a webhook the sealed token that it now has.
	RotateToken(ctx context.Context, t Trigger, hash []byte, entry audit.Entry) (rotated bool, err error)
}

// Sealer keeps tokens secret at rest.
type Sealer interface {
	Seal(ctx context.Context, ref vault.Ref, plain []byte) ([]byte, error)
	Open(ctx context.Context, ref vault.Ref, sealed []byte) ([]byte, error)
}

// Workflows finds workflows.
type Workflows interface {
	Get(ctx context.Context, actor auth.Actor, id string) (workflow.Workflow, error)
}

// Runs starts runs.
type Runs interface {
	Fire(ctx context.Context, f run.Firing) (run.Started, error)
	Try(ctx context.Context, actor auth.Actor, workflowID string, trigger run.Trigger, watch bool) (run.Started, error)
	// Watch watches a run that was started before, Await waits for its end.
	Watch(ctx context.Context, actor auth.Actor, id string) (run.Started, error)
	Await(ctx context.Context, actor auth.Actor, started run.Started, atMost time.Duration) (run.Detail, error)
}

// Service has the use cases of triggers.
type Service struct {
	store     Store
	workflows Workflows
	runs      Runs
	vault     Sealer
	catalog   *action.Catalog
	inbox     *Inbox
	base      func() string
}

// NewService makes a service on a store. The addresses of webhooks begin with
// base, and their latest calls are in the inbox.
func NewService(store Store, workflows Workflows, runs Runs, vault Sealer, catalog *action.Catalog, inbox *Inbox, base func() string) *Service {
	return &Service{store: store, workflows: workflows, runs: runs, vault: vault, catalog: catalog, inbox: inbox, base: base}
}

// List lists the triggers of a workflow by id, those of which nothing is kept
// too.
func (s *Service) List(ctx context.Context, actor auth.Actor, workflowID string, page paging.Request) (paging.Page[Trigger], error) {
	w, err := s.workflows.Get(ctx, actor, workflowID)
	if err != nil {
		return paging.Page[Trigger]{}, err
	}
	kept, err := s.store.Triggers(ctx, actor.Workspace.ID, workflowID)
	if err != nil {
		return paging.Page[Trigger]{}, err
	}
	byID := map[string]Trigger{}
	for _, t := range kept {
		byID[t.ID] = t
	}
	var out []Trigger
	for _, defined := range w.Definition.Triggers {
		t := byID[defined.ID]
		if t.Type != defined.Type {
			t = Trigger{WorkspaceID: w.WorkspaceID, WorkflowID: w.ID, ID: defined.ID, Type: defined.Type, Version: w.Version, Active: w.State == workflow.Active}
		}
		if t.ID > page.After {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Trigger) int { return cmp.Compare(a.ID, b.ID) })
	out = out[:min(len(out), page.Limit+1)]
	return paging.Cut(out, page.Limit, func(t Trigger) string { return t.ID }), nil
}

// find returns a trigger of the current definition.
func (s *Service) find(ctx context.Context, actor auth.Actor, workflowID, id string) (workflow.Trigger, error) {
	w, err := s.workflows.Get(ctx, actor, workflowID)
	if err != nil {
		return workflow.Trigger{}, err
	}
	for _, t := range w.Definition.Triggers {
		if t.ID == id {
			return t, nil
		}
	}
	return workflow.Trigger{}, notFound(workflowID, id)
}
