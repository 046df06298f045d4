// Package workflow owns workflows: their states and versions, the format of
// definitions, and the compiler that checks them. It does not own runs or the
// execution of definitions.
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
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/search"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/uid"
)

// State is the state of a workflow.
type State string

// The states.
const (
	Draft  State = "draft"
	Active State = "active"
	Paused State = "paused"
)

// States lists the states.
func States() []State { return []State{Draft, Active, Paused} }

// Known reports whether s is a valid state.
func (s State) Known() bool { return slices.Contains(States(), s) }

// Workflow is a stored workflow with its current definition.
type Workflow struct {
	ID          string
	WorkspaceID string
	Name        string
	Description *string
	State       State
	Version     int
	// Revision increases with every change of the row; it is the ETag.
	Revision   int64
	Definition Definition
	Layout     Layout
	Pinned     Pins
	// Source is the YAML text of the workflow, nil if there is none. A stale text no
	// longer matches the workflow.
	Source      *string
	SourceStale bool
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// ETag returns the ETag of the current revision.
func (w Workflow) ETag() string { return `"` + strconv.FormatInt(w.Revision, 10) + `"` }

// Item is a workflow in a list.
type Item struct {
	ID        string
	Name      string
	State     State
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Filter narrows a list of workflows. The zero Filter matches all.
type Filter struct {
	State State
	// Words must all occur in the name, the description or the id.
	Words search.Query
}

// Version is an immutable version of a workflow's definition.
type Version struct {
	WorkflowID string
	Number     int
	Definition Definition
	// Source is the text of the definition, nil if there is none.
	Source    *string
	CreatedAt time.Time
	CreatedBy string
	// CreatedByName is the name of that person or API key, if it is known. It is not stored.
	CreatedByName string
}

// Change is an update of a workflow with its side effects.
type Change struct {
	Workflow    Workflow
	WasRevision int64
	NewVersion  *Version
	Events      []event.Event
	Entries     []audit.Entry
	// Armed are all triggers of the workflow; nil when they are unchanged.
	Armed *[]Armed
	// Rewritten reports whether the text of the current version changed.
	Rewritten bool
	// Connections are the names of the connections that must exist: those of a workflow
	// that becomes active, or of a new version of an active one. They are sorted.
	Connections []string
	// Repinned reports whether the files of the pins may have changed.
	Repinned bool
}

// Files returns the ids of the files that must exist: those of a new version, and those
// of new pins.
func (c Change) Files() []string {
	var ids []string
	if c.NewVersion != nil {
		ids = c.NewVersion.Definition.Files.IDs()
	}
	if c.Repinned {
		ids = append(ids, c.Workflow.Pinned.FileIDs()...)
	}
	return ids
}

// Store stores workflows. Each method is one transaction. A pointer result is nil
// when there is no such row; a false result means that nothing was changed.
type Store interface {
	// In returns the store as a part of a transaction.
	In(tx txn.Tx) Store
	// InsertWorkflow stores a new workflow with its first version and its
	// triggers. It returns false if the workspace already has atMost workflows, and
	// file_not_found if one of its files does not exist.
	InsertWorkflow(ctx context.Context, w Workflow, first Version, atMost int, entry audit.Entry, armed ...Armed) (inserted bool, err error)
	Workflow(ctx context.Context, workspaceID, id string) (*Workflow, error)
	// Workflows lists workflows, newest first. With Words, a page may be short or
	// even empty and still have a next one, because the number of rows scanned per
	// page is limited.
	Workflows(ctx context.Context, workspaceID string, filter Filter, page paging.Request) (paging.Page[Item], error)
	// SearchWorkflows returns the best matches of a query, best first.
	SearchWorkflows(ctx context.Context, workspaceID string, query search.Query, limit int) ([]Item, error)
	// Activities returns the recent activity of the given workflows by id.
	Activities(ctx context.Context, workspaceID string, ids []string) (map[string]Activity, error)
	// UpdateWorkflow applies the change if the row still has WasRevision and the
	// connections and files of the change exist.
	UpdateWorkflow(ctx context.Context, change Change) (updated bool, err error)
	// DeleteWorkflow hides the workflow, its runs and its webhooks immediately, if
	// the row still has the revision.
	DeleteWorkflow(ctx context.Context, w Workflow, at time.Time, entry audit.Entry) (deleted bool, err error)
	Versions(ctx context.Context, workspaceID, id string, page paging.Request) (paging.Page[Version], error)
	Version(ctx context.Context, workspaceID, id string, number int) (*Version, error)
	// File finds a file that a definition or a pin names.
	File(ctx context.Context, workspaceID, id string, now time.Time) (*file.File, error)
}

// Service implements the operations on workflows.
type Service struct {
	store   Store
	catalog *action.Catalog
	types   *TriggerTypes
	names   NameSource
	arming  Arming
	schema  func() ([]byte, error)
	// shortSchema does not list what services can do.
	shortSchema func() ([]byte, error)
	nodes       Nodes
	own         OwnSource // nil: there are no own integrations
}

// NameSource returns the names of the secrets, variables and connections of a workspace.
// It marks the connections that the actor may not use.
type NameSource interface {
	Names(ctx context.Context, actor auth.Actor) (Names, error)
}

// NewService returns a Service. The catalog has the available actions, types the
// types of triggers, and names the secrets and variables that expressions can refer
// to.
func NewService(store Store, catalog *action.Catalog, types *TriggerTypes, names NameSource, arming Arming) *Service {
	return &Service{
		store: store, catalog: catalog, types: types, names: names, arming: arming,
		schema:      sync.OnceValues(func() ([]byte, error) { return Schema(catalog, types, true) }),
		shortSchema: sync.OnceValues(func() ([]byte, error) { return Schema(catalog, types, false) }),
	}
}

// CheckNodes makes the service refuse definitions that one of the nodes cannot execute.
// Without it, there is only this process.
func (s *Service) CheckNodes(nodes Nodes) { s.nodes = nodes }

// UseOwn lets definitions use what workspaces have described themselves.
func (s *Service) UseOwn(source OwnSource) { s.own = source }

// check finds the files and the level of a definition and reports why it cannot replace another one.
func (s *Service) check(ctx context.Context, actor auth.Actor, was Definition, d *Definition) ([]Problem, error) {
	missing, err := s.resolveFiles(ctx, actor.Workspace.ID, d)
	if err != nil {
		return nil, err
	}
	v, err := s.vocabulary(ctx, actor.Workspace.ID, *d)
	if err != nil {
		return nil, err
	}
	problems, level, err := Check(ctx, was, *d, v.Actions, v.Types, actor.Workspace.ID, func() (Names, error) { return s.names.Names(ctx, actor) })
	if len(missing) > 0 {
		problems = append(problems, missing...)
		sortProblems(problems)
	}
	d.Level = level
	return problems, err
}

const (
	maxName        = 200
	maxDescription = 4000
)

// In returns the service as a part of a transaction.
func (s *Service) In(tx txn.Tx) *Service {
	bound := *s
	bound.store = s.store.In(tx)
	return &bound
}

// New is the input for creating a workflow.
type New struct {
	Name        string
	Description *string
}

// Create creates a draft without steps.
func (s *Service) Create(ctx context.Context, actor auth.Actor, in New) (Workflow, error) {
	w := newDraft(actor)
	patch := Patch{Name: &in.Name, Description: in.Description, SetDescription: true}
	if err := patch.applyTexts(&w); err != nil {
		return Workflow{}, err
	}
	if err := s.insert(ctx, actor, w); err != nil {
		return Workflow{}, err
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

// List lists the workflows of a workspace, newest first.
func (s *Service) List(ctx context.Context, actor auth.Actor, filter Filter, page paging.Request) (paging.Page[Item], error) {
	return s.store.Workflows(ctx, actor.Workspace.ID, filter, page)
}

// Search returns the workflows of a workspace that match a query by their name,
// description or id, best first.
func (s *Service) Search(ctx context.Context, actor auth.Actor, query search.Query, limit int) ([]Item, error) {
	return s.store.SearchWorkflows(ctx, actor.Workspace.ID, query, limit)
}

// Delete deletes a workflow that is not active, with all its runs.
func (s *Service) Delete(ctx context.Context, actor auth.Actor, id string, match etag.Match) error {
	for {
		w, err := s.Get(ctx, actor, id)
		if err != nil {
			return err
		}
		if err := w.check(match); err != nil {
			return err
		}
		if w.State == Active {
			return fault.New(fault.WorkflowActive, "workflow %q is active: pause it first, then delete it", id)
		}
		entry := actor.AuditEntry("workflow.deleted", "workflow", id, map[string]any{"name": w.Name})
		deleted, err := s.store.DeleteWorkflow(ctx, w, entry.At, entry)
		if err != nil || deleted {
			return err
		}
	}
}

// NotFound returns the error for an id that is no workflow of the workspace.
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
