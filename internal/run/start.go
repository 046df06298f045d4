package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Start is a new run with all that comes with it.
type Start struct {
	Run Run
	// Revision is that of the workflow when the run was decided on.
	Revision int64
	// Node owns the run from its first moment; empty leaves it to whoever takes it
	// up.
	Node         string
	WorkflowName string
	Plan         auth.Plan
	// Steps are those that a retry takes over.
	Steps []Step
	// Share says how many runs with its ShareKey may be under way, nil: any.
	Share *workflow.Share
	Event event.Event
	// Draft is what a run of a draft executes.
	Draft *workflow.Unsaved
	// Fire is set for a run that a trigger of its workflow starts.
	Fire *Fire
}

// Why a run was not started.
var (
	// ErrAtLimit says that as many runs as may share a key are under way.
	ErrAtLimit = errors.New("as many runs as may be are under way")
	// ErrQueueFull says that as many runs as may be wait for their turn.
	ErrQueueFull = errors.New("as many runs as may be wait for their turn")
	// ErrStarted says that the run is there already.
	ErrStarted = errors.New("the run was started before")
	// ErrParentEnded says that the run that asks for it has ended meanwhile.
	ErrParentEnded = errors.New("the run that asks for it has ended")
)

// Request asks for a run.
type Request struct {
	WorkflowID string
	Payload    json.RawMessage
	// Depth is how many runs stand above the new one.
	Depth int
	// Draft is a definition to run in the place of the saved one; nil for none.
	Draft *workflow.Unsaved
	// Watch says that somebody will wait for the end of the run.
	Watch bool
}

// Started is a run that was started, and, when it is watched, a channel that is
// closed at its end. The watch began before the run did: no end is missed.
type Started struct {
	Detail
	ended <-chan *Detail
}

// Start starts a run of the current version. The run is durable when it
// returns.
func (s *Service) Start(ctx context.Context, actor auth.Actor, in Request) (Started, error) {
	if in.Depth > action.MaxDepth {
		return Started{}, tooDeep()
	}
	r := Run{WorkspaceID: actor.Workspace.ID, WorkflowID: in.WorkflowID, Trigger: Trigger{Type: Manual, Payload: in.Payload}, Depth: in.Depth, Draft: in.Draft != nil}
	return s.begin(ctx, Start{Run: r, Draft: in.Draft}, in.Watch)
}

// begin starts a run that says what it is a run of. One without a version gets
// the current one, one without an id a new one.
func (s *Service) begin(ctx context.Context, draft Start, watch bool) (Started, error) {
	for {
		start := draft
		if err := s.prepare(ctx, &start); err != nil {
			return Started{}, err
		}
		started, ok, err := s.tryStart(ctx, start, watch)
		if err != nil || ok {
			return started, err
		}
	}
}

// prepare fills in what a start has from its workflow. What is remembered of the
// workflow is good enough to go ahead, but not to refuse.
func (s *Service) prepare(ctx context.Context, start *Start) error {
	likely := *start
	if s.prepareBy(ctx, s.store.LikelyHead, &likely) == nil {
		*start = likely
		return nil
	}
	return s.prepareBy(ctx, s.store.WorkflowHead, start)
}

func (s *Service) prepareBy(ctx context.Context, find findHead, start *Start) error {
	r := &start.Run
	head, err := headBy(ctx, find, r.WorkspaceID, r.WorkflowID)
	if err != nil {
		return err
	}
	switch {
	case start.Fire != nil && head.State != workflow.Active:
		return ErrNotArmed
	case head.State == workflow.Paused:
		return fault.New(fault.WorkflowPaused, "workflow %q is paused: activate it to run it", r.WorkflowID)
	}
	if r.Trigger.Payload, err = checkPayload(head.Plan, r.Trigger.Payload); err != nil {
		return err
	}
	if r.WorkflowVersion == 0 {
		r.WorkflowVersion = head.Version
	}
	start.Revision, start.WorkflowName, start.Plan = head.Revision, head.Name, head.Plan
	return s.complete(ctx, start)
}

// complete fills in what a start has from the moment and from its plan.
func (s *Service) complete(ctx context.Context, start *Start) error {
	r := &start.Run
	r.Status, r.StartedAt = Running, clock.Now()
	if r.ID == "" {
		r.ID = uid.At(uid.Run, r.StartedAt)
	}
	// A draft takes no place from the runs that count.
	if !r.Draft {
		if err := s.share(ctx, start); err != nil {
			return err
		}
	}
	var err error
	start.Event, err = StartedEvent(*r, start.WorkflowName)
	return err
}

// share finds the places that a run shares with others.
func (s *Service) share(ctx context.Context, start *Start) error {
	r := &start.Run
	plan, err := s.plans.Get(ctx, r.WorkflowID, r.WorkflowVersion)
	if err != nil && !errors.Is(err, workflow.ErrCorrupt) {
		return err
	}
	// A version that cannot be read fails the run, where that is seen.
	if plan == nil || plan.Share == nil {
		return nil
	}
	start.Share = plan.Share
	r.ShareKey, err = shareKey(*r, plan.Share, start.WorkflowName)
	return err
}

// tryStart writes the run. It answers false when its workflow has changed in
// the meantime.
func (s *Service) tryStart(ctx context.Context, start Start, watch bool) (Started, bool, error) {
	r := start.Run
	var room bool
	if start.Node, room = s.queue.Reserve(r.WorkspaceID, r.ID, start.Plan.Limits().QueuedRuns); !room {
		return Started{}, false, queueFull(start.Plan)
	}
	started := Started{Detail: Detail{Run: r, Steps: start.Steps}}
	if watch {
		started.ended = s.watch(ctx, r.ID)
	}
	failpoint.Hit(failpoint.BeforeAcceptCommit, r.ID)
	ok, err := s.store.StartRun(ctx, start)
	if !ok {
		s.queue.Unreserve(r.ID)
	}
	if ok && start.Share != nil {
		if found, err := s.store.Run(ctx, r.WorkspaceID, r.ID); err == nil && found != nil {
			started.HeldBack = found.HeldBack
		}
	}
	switch {
	case errors.Is(err, ErrQueueFull):
		err = queueFull(start.Plan)
	case errors.Is(err, ErrAtLimit):
		err = fault.New(fault.ConcurrencyLimit, "%d of %d runs of workflow %q%s are under way, and its settings refuse another one",
			start.Share.Limit, start.Share.Limit, r.WorkflowID, withKey(r.ShareKey))
	}
	return started, ok, err
}

func queueFull(plan auth.Plan) error {
	return fault.New(fault.RunQueueFull, "%d runs wait to be executed, which is the most the %s plan allows: try again later",
		plan.Limits().QueuedRuns, plan).After(time.Second)
}

// maxShareKey bounds the key that runs share places by.
const maxShareKey = 500

func shareKey(r Run, share *workflow.Share, workflowName string) (string, error) {
	if share.Key == nil {
		return keyed, nil
	}
	trigger, err := r.Trigger.Seen()
	if err != nil {
		return "", fault.Field("/payload", "is not JSON")
	}
	value, err := share.Key.Eval(&expr.Env{
		Trigger:  trigger,
		Run:      expr.Run{ID: r.ID, StartedAt: r.StartedAt},
		Workflow: expr.Workflow{ID: r.WorkflowID, Name: workflowName, Version: r.WorkflowVersion},
		Now:      r.StartedAt,
	}, expr.Budget{})
	if err != nil {
		return "", fault.New(fault.InvalidRequest, "the concurrency key of the workflow cannot be worked out for this run: %s", err)
	}
	if value == nil {
		value = ""
	}
	key := keyed + fmt.Sprint(value)
	if len(key) > maxShareKey {
		return "", fault.New(fault.InvalidRequest, "the concurrency key of the workflow has more than %d bytes for this run", maxShareKey)
	}
	return key, nil
}

// watch begins to watch a run, for as long as the request lasts.
func (s *Service) watch(ctx context.Context, runID string) <-chan *Detail {
	ended, stop := s.endings.Watch(runID)
	context.AfterFunc(ctx, stop)
	return ended
}

func checkPayload(plan auth.Plan, payload json.RawMessage) (json.RawMessage, error) {
	if payload == nil {
		return json.RawMessage("{}"), nil
	}
	if limit := plan.Limits().PayloadBytes; len(payload) > limit {
		return nil, fault.New(fault.PayloadTooLarge, "the payload has %d bytes; the %s plan allows %d", len(payload), plan, limit).
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

// Watch watches a run that was started before.
func (s *Service) Watch(ctx context.Context, actor auth.Actor, id string) (Started, error) {
	ended := s.watch(ctx, id)
	detail, err := s.Get(ctx, actor, id)
	if err == nil && detail.Status != Running {
		over := make(chan *Detail)
		close(over)
		ended = over
	}
	return Started{Detail: detail, ended: ended}, err
}

// Await waits until a run that is watched has ended, at most for the given
// time, and returns it as it is then.
func (s *Service) Await(ctx context.Context, actor auth.Actor, started Started, atMost time.Duration) (Detail, error) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case whole := <-started.ended:
		if whole != nil {
			return *whole, nil
		}
	case <-timer.C:
	case <-s.closing:
	case <-ctx.Done():
		return started.Detail, nil
	}
	return s.Get(ctx, actor, started.ID)
}
