package run

import (
	"cmp"
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/pubsub"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// WorkflowRef holds the facts about a workflow that starting a run needs.
type WorkflowRef struct {
	Name     string
	State    workflow.State
	Version  int
	Revision int64
	// Plan is the plan of the workspace.
	Plan auth.Plan
}

// Cancellation cancels a running run.
type Cancellation struct {
	WorkspaceID string
	RunID       string
	At          time.Time
}

// Store stores runs. Each method is one transaction; a pointer result is nil if
// the row does not exist.
type Store interface {
	// In returns the store as a part of a transaction.
	In(tx txn.Tx) Store
	Lists
	Definitions
	// StartRun writes the run unless the revision of the workflow or the plan of the
	// workspace has changed. It fails with ErrAtLimit if the run would exceed a
	// concurrency limit that rejects runs, with ErrStarted if the run of a step
	// already exists, and with ErrParentEnded if the run of that step has ended.
	StartRun(ctx context.Context, start Start) (started bool, err error)
	// StartRuns writes runs of one workflow together with the changes of their
	// trigger, and returns the ids of the started runs. Runs that would exceed the
	// concurrency limit are rejected; if all are, it fails with ErrAtLimit and writes
	// nothing. It returns nil if the workflow has another revision.
	StartRuns(ctx context.Context, s Starts) (started []string, err error)
	Run(ctx context.Context, workspaceID, id string) (*Detail, error)
	// CancelRun cancels the run, its open steps and the runs that it waits for, if it
	// is still running.
	CancelRun(ctx context.Context, c Cancellation) (cancelled bool, err error)
	// AnswerStep stores the answer to a step that waits for one.
	AnswerStep(ctx context.Context, a Answer) (answered bool, err error)
	RunProgress(ctx context.Context, workspaceID, id string) (*Progress, error)
	// RunChanges reads the first changes of a run after a position.
	RunChanges(ctx context.Context, workspaceID, id string, after Position, limit int) (*Changes, error)
}

// Definitions reads workflows and their definitions.
type Definitions interface {
	WorkflowRef(ctx context.Context, workspaceID, workflowID string) (*WorkflowRef, error)
	// CachedWorkflowRef may be outdated; StartRun checks the revision.
	CachedWorkflowRef(ctx context.Context, workspaceID, workflowID string) (*WorkflowRef, error)
	// File returns a file that has not expired, or nil.
	File(ctx context.Context, workspaceID, id string, now time.Time) (*file.File, error)
	// RunSummary reads a run without its steps.
	RunSummary(ctx context.Context, workspaceID, id string) (*Run, error)
	// Definition reads the definition of a version, Draft that of a draft run.
	Definition(ctx context.Context, workflowID string, version int) (*workflow.Definition, error)
	Draft(ctx context.Context, runID string) (*workflow.Unsaved, error)
}

// CompletionSource announces the end of runs.
type CompletionSource interface {
	// Watch returns a channel that is closed when the run ends, and a function that
	// stops watching. If the final state of the run is known, it is sent first.
	Watch(runID string) (<-chan *Detail, func())
}

// Queue is the queue of runs that wait to be executed.
type Queue interface {
	// Reserve reserves a slot for a run that is about to start, unless the workspace
	// already has atMost queued runs. The run's wake-up takes the slot. It returns the
	// node that has the slot, or "" if any node may execute the run.
	Reserve(workspaceID, runID string, atMost int) (node string, ok bool)
	// Unreserve releases the slot of a run that did not start.
	Unreserve(runID string)
}

// Programs finds compiled versions of workflows.
type Programs interface {
	Get(ctx context.Context, workflowID string, version int) (*workflow.Program, error)
	// OfDraft finds the program of a draft run.
	OfDraft(ctx context.Context, runID string) (*workflow.Program, error)
}

// ProgramOf returns the program that a run executes, or nil if it was deleted.
func ProgramOf(ctx context.Context, programs Programs, r Run) (*workflow.Program, error) {
	if r.Draft {
		return programs.OfDraft(ctx, r.ID)
	}
	return programs.Get(ctx, r.WorkflowID, r.WorkflowVersion)
}

// Service implements the use cases of runs.
type Service struct {
	store       Store
	programs    Programs
	completions CompletionSource
	queue       Queue
	queued      func(runID string) bool
	admit       func() error
	changes     *pubsub.Broker // keyed by run id
	closing     chan struct{}
}

// NewService returns a service. The topics of changes are the ids of runs.
func NewService(store Store, programs Programs, completions CompletionSource, queue Queue, changes *pubsub.Broker) *Service {
	return &Service{
		store: store, programs: programs, completions: completions, queue: queue, queued: func(string) bool { return false }, admit: func() error { return nil }, changes: changes,
		closing: make(chan struct{}),
	}
}

// In returns the service as a part of a transaction.
func (s *Service) In(tx txn.Tx) *Service {
	bound := *s
	bound.store = s.store.In(tx)
	return &bound
}

// QueuedInMemory sets the function that reports whether a run waits in memory to be
// executed. Without it, the store knows which runs wait.
func (s *Service) QueuedInMemory(queued func(runID string) bool) { s.queued = queued }

// AdmitStarts sets a function that returns an error while no new runs may start. The runs
// that steps start are not new in this sense: without them, runs in flight could not end.
func (s *Service) AdmitStarts(admit func() error) { s.admit = admit }

// Close ends every Await, because the process is about to stop.
func (s *Service) Close() { close(s.closing) }

func (s *Service) workflowRef(ctx context.Context, workspaceID, workflowID string) (WorkflowRef, error) {
	return refBy(ctx, s.store.WorkflowRef, workspaceID, workflowID)
}

type findRef func(ctx context.Context, workspaceID, workflowID string) (*WorkflowRef, error)

func refBy(ctx context.Context, find findRef, workspaceID, workflowID string) (WorkflowRef, error) {
	if !uid.Valid(uid.Workflow, workflowID) {
		return WorkflowRef{}, workflow.NotFound(workflowID)
	}
	ref, err := find(ctx, workspaceID, workflowID)
	return fault.Found(ref, err, workflow.NotFound, workflowID)
}

// Get reads a run with its steps.
func (s *Service) Get(ctx context.Context, actor auth.Actor, id string) (Detail, error) {
	if !uid.Valid(uid.Run, id) {
		return Detail{}, notFound(id)
	}
	found, err := s.store.Run(ctx, actor.Workspace.ID, id)
	detail, err := fault.Found(found, err, notFound, id)
	if err == nil && detail.Status == Running {
		detail.Queued = detail.Queued || s.queued(id)
	}
	return detail, err
}

// Definition returns a run and the definition that it executes.
func (s *Service) Definition(ctx context.Context, actor auth.Actor, id string) (Run, workflow.Definition, error) {
	r, err := s.runSummary(ctx, actor, id)
	if err != nil {
		return Run{}, workflow.Definition{}, err
	}
	if r.Draft {
		draft, err := s.store.Draft(ctx, id)
		if err != nil || draft == nil {
			return r, workflow.Definition{}, cmp.Or(err, notFound(id))
		}
		return r, draft.Definition, nil
	}
	definition, err := s.store.Definition(ctx, r.WorkflowID, r.WorkflowVersion)
	d, err := fault.Found(definition, err, notFound, id)
	return r, d, err
}

func (s *Service) runSummary(ctx context.Context, actor auth.Actor, id string) (Run, error) {
	if !uid.Valid(uid.Run, id) {
		return Run{}, notFound(id)
	}
	r, err := s.store.RunSummary(ctx, actor.Workspace.ID, id)
	return fault.Found(r, err, notFound, id)
}

// List lists the runs of a workflow, most recent first. An empty status means any
// status. If waiting is set, it selects runs that wait or runs that do not.
func (s *Service) List(ctx context.Context, actor auth.Actor, workflowID string, status Status, waiting *bool, page paging.Request) (paging.Page[Item], error) {
	if waiting != nil {
		found, err := s.ListAll(ctx, actor, Filter{WorkflowID: workflowID, Status: status, Waiting: waiting}, page)
		items := make([]Item, len(found.Items))
		for i, listed := range found.Items {
			items[i] = listed.Item
		}
		return paging.Page[Item]{Items: items, Next: found.Next}, err
	}
	if _, err := s.workflowRef(ctx, actor.Workspace.ID, workflowID); err != nil {
		return paging.Page[Item]{}, err
	}
	return s.store.Runs(ctx, actor.Workspace.ID, workflowID, status, page)
}

// Cancel cancels a running run immediately.
func (s *Service) Cancel(ctx context.Context, actor auth.Actor, id string) (Detail, error) {
	detail, err := s.Get(ctx, actor, id)
	if err != nil {
		return Detail{}, err
	}
	if detail.Status != Running {
		return Detail{}, notRunning(id, detail.Status)
	}
	done, err := s.store.CancelRun(ctx, Cancellation{WorkspaceID: actor.Workspace.ID, RunID: id, At: clock.Now()})
	if err != nil {
		return Detail{}, err
	}
	after, err := s.Get(ctx, actor, id)
	if err == nil && !done {
		err = notRunning(id, after.Status)
	}
	return after, err
}

func notFound(id string) error {
	return fault.New(fault.RunNotFound, "there is no run %q", id)
}

func notRunning(id string, status Status) error {
	return fault.New(fault.RunNotRunning, "run %q is not running: it is %s", id, status)
}
