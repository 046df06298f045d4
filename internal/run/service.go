package run

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/fault"
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
}

// Start is a new run with all that comes with it.
type Start struct {
	Run Run
	// Revision is that of the workflow when the run was decided on.
	Revision int64
	// Node owns the run from its first moment; empty leaves it to whoever wakes.
	Node         string
	WorkflowName string
	Event        event.Event
}

// Cancellation ends a run that is still running.
type Cancellation struct {
	WorkspaceID string
	RunID       string
	At          time.Time
	Event       event.Event
}

// Store keeps runs. A method is one atomic unit; a pointer result is nil when
// there is no such row.
type Store interface {
	Lists
	WorkflowHead(ctx context.Context, workspaceID, workflowID string) (*Head, error)
	// StartRun writes the run if the workflow still has the revision.
	StartRun(ctx context.Context, start Start) (started bool, err error)
	Run(ctx context.Context, workspaceID, id string) (*Detail, error)
	Runs(ctx context.Context, workspaceID, workflowID string, status Status, page paging.Request) (paging.Page[Item], error)
	// CancelRun ends the run and its open steps if it is still running.
	CancelRun(ctx context.Context, c Cancellation) (cancelled bool, err error)
}

// Endings tells when runs end.
type Endings interface {
	// Watch returns a channel that is closed when the run ends, and a function
	// that stops watching.
	Watch(runID string) (<-chan struct{}, func())
}

// Service has the use cases of runs.
type Service struct {
	store   Store
	endings Endings
	node    string
	closing chan struct{}
}

// NewService makes a service on a store; node owns the runs started here.
func NewService(store Store, endings Endings, node string) *Service {
	return &Service{store: store, endings: endings, node: node, closing: make(chan struct{})}
}

// Close ends every wait for a run: the service is about to stop.
func (s *Service) Close() { close(s.closing) }

// Request asks for a run.
type Request struct {
	WorkflowID string
	Payload    json.RawMessage
	// Watch says that somebody will wait for the end of the run.
	Watch bool
}

// Started is a run that was started, and, when it is watched, a channel that is
// closed at its end. The watch began before the run did: no end is missed.
type Started struct {
	Detail
	ended <-chan struct{}
}

// Start starts a run of the current version. The run is durable when it
// returns.
func (s *Service) Start(ctx context.Context, actor auth.Actor, in Request) (Started, error) {
	body, err := checkPayload(actor, in.Payload)
	if err != nil {
		return Started{}, err
	}
	for {
		head, err := s.head(ctx, actor, in.WorkflowID)
		if err != nil {
			return Started{}, err
		}
		if head.State == workflow.Paused {
			return Started{}, fault.New(fault.WorkflowPaused, "workflow %q is paused: activate it to run it", in.WorkflowID)
		}
		now := clock.Now()
		r := Run{
			ID: uid.At(uid.Run, now), WorkspaceID: actor.Workspace.ID, WorkflowID: in.WorkflowID, WorkflowVersion: head.Version,
			Status: Running, Trigger: Trigger{Type: Manual, Payload: body}, StartedAt: now,
		}
		begun, err := StartedEvent(r, head.Name)
		if err != nil {
			return Started{}, err
		}
		started := Started{Detail: Detail{Run: r}}
		if in.Watch {
			started.ended = s.watch(ctx, r.ID)
		}
		ok, err := s.store.StartRun(ctx, Start{Run: r, Revision: head.Revision, Node: s.node, WorkflowName: head.Name, Event: begun})
		if err != nil {
			return Started{}, err
		}
		if ok {
			return started, nil
		}
	}
}

// watch begins to watch a run, for as long as the request lasts.
func (s *Service) watch(ctx context.Context, runID string) <-chan struct{} {
	ended, stop := s.endings.Watch(runID)
	context.AfterFunc(ctx, stop)
	return ended
}

func checkPayload(actor auth.Actor, payload json.RawMessage) (json.RawMessage, error) {
	if payload == nil {
		return json.RawMessage("{}"), nil
	}
	if limit := actor.Limits().PayloadBytes; len(payload) > limit {
		return nil, fault.New(fault.PayloadTooLarge, "the payload has %d bytes; the %s plan allows %d",
			len(payload), actor.Workspace.Plan, limit).
			With(fault.Detail{Pointer: "/payload", Message: "is too large"})
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, payload); err != nil {
		return nil, fault.Field("/payload", "is not JSON")
	}
	if compact.Bytes()[0] != '{' {
		return nil, fault.Field("/payload", "must be an object")
	}
	return compact.Bytes(), nil
}

func (s *Service) head(ctx context.Context, actor auth.Actor, workflowID string) (Head, error) {
	if !uid.Valid(uid.Workflow, workflowID) {
		return Head{}, workflow.NotFound(workflowID)
	}
	head, err := s.store.WorkflowHead(ctx, actor.Workspace.ID, workflowID)
	return fault.Found(head, err, workflow.NotFound, workflowID)
}

// Get reads a run with its steps.
func (s *Service) Get(ctx context.Context, actor auth.Actor, id string) (Detail, error) {
	if !uid.Valid(uid.Run, id) {
		return Detail{}, notFound(id)
	}
	detail, err := s.store.Run(ctx, actor.Workspace.ID, id)
	return fault.Found(detail, err, notFound, id)
}

// List lists the runs of a workflow, most recent first; an empty status means
// every status.
func (s *Service) List(ctx context.Context, actor auth.Actor, workflowID string, status Status, page paging.Request) (paging.Page[Item], error) {
	if _, err := s.head(ctx, actor, workflowID); err != nil {
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
	head, err := s.head(ctx, actor, detail.WorkflowID)
	if err != nil {
		return Detail{}, notFound(id)
	}
	now := clock.Now()
	ended := detail.Run
	ended.Status = Cancelled
	cancelled, err := EndedEvent(ended, head.Name, now)
	if err != nil {
		return Detail{}, err
	}
	done, err := s.store.CancelRun(ctx, Cancellation{WorkspaceID: actor.Workspace.ID, RunID: id, At: now, Event: cancelled})
	if err != nil {
		return Detail{}, err
	}
	after, err := s.Get(ctx, actor, id)
	if err == nil && !done {
		err = notRunning(id, after.Status)
	}
	return after, err
}

// Await waits until a run that is watched has ended, at most for the given
// time, and returns it as it is then.
func (s *Service) Await(ctx context.Context, actor auth.Actor, started Started, atMost time.Duration) (Detail, error) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-started.ended:
	case <-timer.C:
	case <-s.closing:
	case <-ctx.Done():
		return started.Detail, nil
	}
	return s.Get(ctx, actor, started.ID)
}

func notFound(id string) error {
	return fault.New(fault.RunNotFound, "there is no run %q", id)
}

func notRunning(id string, status Status) error {
	return fault.New(fault.RunNotRunning, "run %q is not running: it is %s", id, status)
}
