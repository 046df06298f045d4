// Package workflow owns workflows: what one is, its states and versions, the
// definition of its steps, and the check that a definition can run. It does not
// own runs, nor how a definition is executed.
package workflow

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

// State is where a workflow stands.
type State string

// The states.
const (
	Draft  State = "draft"
	Active State = "active"
	Paused State = "paused"
)

// States lists the states.
func States() []State { return []State{Draft, Active, Paused} }

// Known tells whether s is a state.
func (s State) Known() bool { return slices.Contains(States(), s) }

// Workflow is a stored workflow with its current definition.
type Workflow struct {
	ID          string
	WorkspaceID string
	Name        string
	Description *string
	State       State
	Version     int
	// Revision grows with every change of the row; it is the ETag.
	Revision   int64
	Definition Definition
	Layout     Layout
	Pinned     Pins
	// Source is the text that somebody wrote for it, nil if nobody did. A stale
	// one says something else than the workflow is by now.
	Source      *string
	SourceStale bool
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// ETag names this state of the workflow.
func (w Workflow) ETag() string { return `"` + strconv.FormatInt(w.Revision, 10) + `"` }

// Item is a workflow in a list.
type Item struct {
	ID        string
	Name      string
	State     State
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Version is an immutable definition that a workflow had.
type Version struct {
	WorkflowID string
	Number     int
	Definition Definition
	// Source is the text of the definition, nil if there is none.
	Source    *string
	CreatedAt time.Time
	CreatedBy string
}

// Change is a new state of a workflow with all that follows from it.
type Change struct {
	Workflow    Workflow
	WasRevision int64
	NewVersion  *Version
	Events      []event.Event
	Entries     []audit.Entry
	// Armed are all triggers of the workflow; nil when they stay as they are.
	Armed *[]Armed
	// Rewritten says that the current version has another text than before.
	Rewritten bool
}

// Store keeps workflows. A method is one atomic unit; a pointer result is nil
// when there is no such row, a false result means that nothing was changed.
type Store interface {
	// InsertWorkflow refuses, with false, when the workspace holds atMost.
	InsertWorkflow(ctx context.Context, w Workflow, first Version, atMost int, entry audit.Entry) (inserted bool, err error)
	Workflow(ctx context.Context, workspaceID, id string) (*Workflow, error)
	Workflows(ctx context.Context, workspaceID string, state State, page paging.Request) (paging.Page[Item], error)
	// Activities reads what a few workflows did lately, by their ids.
	Activities(ctx context.Context, workspaceID string, ids []string) (map[string]Activity, error)
	// UpdateWorkflow applies the change if the row still has WasRevision.
	UpdateWorkflow(ctx context.Context, change Change) (updated bool, err error)
	// DeleteWorkflow hides the workflow, its runs and its webhooks at once, if
	// the row still has the revision.
	DeleteWorkflow(ctx context.Context, w Workflow, at time.Time, entry audit.Entry) (deleted bool, err error)
	Versions(ctx context.Context, workspaceID, id string, page paging.Request) (paging.Page[Version], error)
	Version(ctx context.Context, workspaceID, id string, number int) (*Version, error)
}

// Service has the use cases of workflows.
type Service struct {
	store   Store
	catalog *action.Catalog
	known   Known
	arming  Arming
	schema  func() ([]byte, error)
}

// Known tells what secrets and variables a workspace has.
type Known interface {
	Names(ctx context.Context, workspaceID string) (Names, error)
}

// NewService makes a service on a store; the catalog says which actions exist,
// known what expressions can refer to, arming makes triggers ready.
func NewService(store Store, catalog *action.Catalog, known Known, arming Arming) *Service {
	return &Service{
		store: store, catalog: catalog, known: known, arming: arming,
		schema: sync.OnceValues(func() ([]byte, error) { return Schema(catalog) }),
	}
}

func (s *Service) check(ctx context.Context, actor auth.Actor, d Definition) ([]Problem, error) {
	return Check(d, s.catalog, func() (Names, error) { return s.known.Names(ctx, actor.Workspace.ID) })
}

const (
	maxName        = 200
	maxDescription = 4000
)

// New is what the maker of a workflow chooses.
type New struct {
	Name        string
	Description *string
}

// Create makes a draft without steps.
func (s *Service) Create(ctx context.Context, actor auth.Actor, in New) (Workflow, error) {
	name, err := fault.Name("/name", in.Name, maxName)
	if err != nil {
		return Workflow{}, err
	}
	description, err := checkDescription(in.Description)
	if err != nil {
		return Workflow{}, err
	}
	now := clock.Now()
	w := Workflow{
		ID: uid.At(uid.Workflow, now), WorkspaceID: actor.Workspace.ID, Name: name, Description: description,
		State: Draft, Version: 1, Revision: 1, Layout: Layout{}, Pinned: Pins{}, CreatedAt: now, UpdatedAt: now,
	}
	first := Version{WorkflowID: w.ID, Number: 1, CreatedAt: now, CreatedBy: actor.Name()}
	limit := actor.Limits().Workflows
	entry := actor.Did("workflow.created", "workflow", w.ID, map[string]any{"name": name})
	inserted, err := s.store.InsertWorkflow(ctx, w, first, limit, entry)
	if err != nil {
		return Workflow{}, err
	}
	if !inserted {
		return Workflow{}, fault.New(fault.PlanLimitExceeded, "the %s plan allows %d workflows; delete one first", actor.Workspace.Plan, limit)
	}
	return w, nil
}

// Get reads one workflow.
func (s *Service) Get(ctx context.Context, actor auth.Actor, id string) (Workflow, error) {
	if !uid.Valid(uid.Workflow, id) {
		return Workflow{}, NotFound(id)
	}
	w, err := s.store.Workflow(ctx, actor.Workspace.ID, id)
	return fault.Found(w, err, NotFound, id)
}

// List lists the workflows of a workspace, newest first; an empty state means
// every state.
func (s *Service) List(ctx context.Context, actor auth.Actor, state State, page paging.Request) (paging.Page[Item], error) {
	return s.store.Workflows(ctx, actor.Workspace.ID, state, page)
}

// Delete removes a workflow that is not active, with all its runs.
func (s *Service) Delete(ctx context.Context, actor auth.Actor, id string, match Match) error {
	for {
		w, err := s.Get(ctx, actor, id)
		if err != nil {
			return err
		}
		if err := match.check(w); err != nil {
			return err
		}
		if w.State == Active {
			return fault.New(fault.WorkflowActive, "workflow %q is active: pause it first, then delete it", id)
		}
		entry := actor.Did("workflow.deleted", "workflow", id, map[string]any{"name": w.Name})
		deleted, err := s.store.DeleteWorkflow(ctx, w, entry.At, entry)
		if err != nil || deleted {
			return err
		}
	}
}

// NotFound is the answer for an id that names no workflow of the workspace.
func NotFound(id string) error {
	return fault.New(fault.WorkflowNotFound, "there is no workflow %q", id)
}

func checkDescription(text *string) (*string, error) {
	if text == nil {
		return nil, nil
	}
	checked, err := fault.Text("/description", *text, maxDescription)
	return &checked, err
}
