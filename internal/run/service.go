package run

import (
	"cmp"
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/news"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Head is what starting a run needs to know of its workflow.
type Head struct {
	Name     string
	State    workflow.State
	Version  int
	Revision int64
	// Plan is that of the workspace.
	Plan auth.Plan
}

// Cancellation ends a run that is still running.
type Cancellation struct {
	WorkspaceID string
	RunID       string
	At          time.Time
}

// Store keeps runs. A method is one atomic unit; a pointer result is nil when
// there is no such row.
type Store interface {
	Lists
	Definitions
	// StartRun writes the run if the workflow still has the revision, and the
	// workspace the plan. It fails with ErrAtLimit when the run may not be one too
	// many, with ErrStarted when the run of a step is there already, and with
	// ErrParentEnded when the run of that step has ended.
	StartRun(ctx context.Context, start Start) (started bool, err error)
	// StartRuns writes runs of one workflow together with what their trigger
	// changes of itself, and returns the ids of those that were started. Those
	// that may not be one too many are left out; when all are, it fails with
	// ErrAtLimit and nothing is written. Nil means that the workflow has another
	// revision.
	StartRuns(ctx context.Context, s Starts) (started []string, err error)
	Run(ctx context.Context, workspaceID, id string) (*Detail, error)
	Runs(ctx context.Context, workspaceID, workflowID string, status Status, page paging.Request) (paging.Page[Item], error)
	// CancelRun ends the run and its open steps if it is still running, and the
	// runs that it waits for.
	CancelRun(ctx context.Context, c Cancellation) (cancelled bool, err error)
	// AnswerStep gives a step that waits for an answer its answer.
	AnswerStep(ctx context.Context, a Answer) (answered bool, err error)
	Approvals(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[Approval], error)
	// Logs lists the lines of a run, or of one of its steps; false when there is
	// no such run.
	Logs(ctx context.Context, workspaceID, runID, path string, page paging.Request) (paging.Page[LogLine], bool, error)
	RunProgress(ctx context.Context, workspaceID, id string) (*Progress, error)
	// RunChanges reads the first changes of a run after a position.
	RunChanges(ctx context.Context, workspaceID, id string, after Position, limit int) (*Changes, error)
}

// Definitions has what runs execute.
type Definitions interface {
	WorkflowHead(ctx context.Context, workspaceID, workflowID string) (*Head, error)
	// LikelyHead may be that of a moment ago: StartRun tells.
	LikelyHead(ctx context.Context, workspaceID, workflowID string) (*Head, error)
	// Head reads a run without its steps.
	Head(ctx context.Context, workspaceID, id string) (*Run, error)
	// Definition reads that of a version, Draft that of the run of a draft.
	Definition(ctx context.Context, workflowID string, version int) (*workflow.Definition, error)
	Draft(ctx context.Context, runID string) (*workflow.Unsaved, error)
}

// Endings tells when runs end.
type Endings interface {
	// Watch returns a channel that is closed when the run ends, and a function
	// that stops watching. Where the whole run is known then, it is sent before.
	Watch(runID string) (<-chan *Detail, func())
}

// Queue is where runs wait to be executed.
type Queue interface {
	// Reserve keeps a place for a run that is about to start, unless the
	// workspace has that many queued. The run's wake-up takes the place. The node
	// is the one that has the place; empty, when the run is to find its own.
	Reserve(workspaceID, runID string, atMost int) (node string, ok bool)
	// Unreserve gives back the place of a run that did not start.
	Unreserve(runID string)
	// Queued tells whether a run waits to be executed.
	Queued(runID string) bool
}

// Plans finds compiled versions of workflows.
type Plans interface {
	Get(ctx context.Context, workflowID string, version int) (*workflow.Plan, error)
	// OfDraft finds the plan of the run of a draft.
	OfDraft(ctx context.Context, runID string) (*workflow.Plan, error)
}

// PlanOf finds what a run executes; nil when it is gone.
func PlanOf(ctx context.Context, plans Plans, r Run) (*workflow.Plan, error) {
	if r.Draft {
		return plans.OfDraft(ctx, r.ID)
	}
	return plans.Get(ctx, r.WorkflowID, r.WorkflowVersion)
}

// Service has the use cases of runs.
type Service struct {
	store   Store
	plans   Plans
	endings Endings
	queue   Queue
	news    *news.Hub // by the ids of runs
	closing chan struct{}
}

// NewService makes a service on a store; changes has news of runs by their ids.
func NewService(store Store, plans Plans, endings Endings, queue Queue, changes *news.Hub) *Service {
	return &Service{store: store, plans: plans, endings: endings, queue: queue, news: changes, closing: make(chan struct{})}
}

// Close ends every wait for a run: the service is about to stop.
func (s *Service) Close() { close(s.closing) }

func (s *Service) head(ctx context.Context, workspaceID, workflowID string) (Head, error) {
	return headBy(ctx, s.store.WorkflowHead, workspaceID, workflowID)
}

type findHead func(ctx context.Context, workspaceID, workflowID string) (*Head, error)

func headBy(ctx context.Context, find findHead, workspaceID, workflowID string) (Head, error) {
	if !uid.Valid(uid.Workflow, workflowID) {
		return Head{}, workflow.NotFound(workflowID)
	}
	head, err := find(ctx, workspaceID, workflowID)
	return fault.Found(head, err, workflow.NotFound, workflowID)
}

// Get reads a run with its steps.
func (s *Service) Get(ctx context.Context, actor auth.Actor, id string) (Detail, error) {
	if !uid.Valid(uid.Run, id) {
		return Detail{}, notFound(id)
	}
	found, err := s.store.Run(ctx, actor.Workspace.ID, id)
	detail, err := fault.Found(found, err, notFound, id)
	if err == nil && detail.Status == Running {
		detail.Queued = detail.Queued || s.queue.Queued(id)
	}
	return detail, err
}

// Definition reads what a run executes.
func (s *Service) Definition(ctx context.Context, actor auth.Actor, id string) (Run, workflow.Definition, error) {
	r, err := s.runHead(ctx, actor, id)
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

func (s *Service) runHead(ctx context.Context, actor auth.Actor, id string) (Run, error) {
	if !uid.Valid(uid.Run, id) {
		return Run{}, notFound(id)
	}
	r, err := s.store.Head(ctx, actor.Workspace.ID, id)
	return fault.Found(r, err, notFound, id)
}

// List lists the runs of a workflow, most recent first; an empty status means
// every status.
func (s *Service) List(ctx context.Context, actor auth.Actor, workflowID string, status Status, page paging.Request) (paging.Page[Item], error) {
	if _, err := s.head(ctx, actor.Workspace.ID, workflowID); err != nil {
		return paging.Page[Item]{}, err
	}
	return s.store.Runs(ctx, actor.Workspace.ID, workflowID, status, page)
}

// Cancel ends a running run at once and for good.
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
