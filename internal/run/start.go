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
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Start is a new run with everything that is written with it.
type Start struct {
	Run Run
	// Revision is the revision of the workflow that the start is based on.
	Revision int64
	// Node owns the run from the beginning; empty leaves it to any node.
	Node         string
	WorkflowName string
	Plan         auth.Plan
	// Level is the release that the definition needs.
	Level int
	// Steps are the steps that a retry reuses.
	Steps []Step
	// Files are the files that were received with the payload. Holds are the ids of
	// other files that the payload and the steps refer to.
	Files []file.File
	Holds []string
	// HoldsOf is the run whose files the run holds too: the one that it retries, if
	// that has files; empty for none.
	HoldsOf string
	// Concurrency limits the runs in flight with the same ConcurrencyKey; nil for no
	// limit.
	Concurrency *workflow.ConcurrencyLimit
	Event       event.Event
	// Draft is the definition that a draft run executes.
	Draft *workflow.Unsaved
	// Fire is set if a trigger of the workflow starts the run.
	Fire *Fire
	// reuse picks Steps once the version is known; nil if Steps are already set.
	reuse func(ctx context.Context, version int) ([]Step, error)
}

// Errors of a store that did not start a run.
var (
	// ErrAtLimit is returned if the concurrency limit is reached.
	ErrAtLimit = errors.New("the concurrency limit is reached")
	// ErrQueueFull is returned if the workspace has too many queued runs.
	ErrQueueFull = errors.New("the queue is full")
	// ErrStarted is returned if the run already exists.
	ErrStarted = errors.New("the run was already started")
	// ErrParentEnded is returned if the parent run has ended.
	ErrParentEnded = errors.New("the parent run has ended")
)

// Request is a request to start a run.
type Request struct {
	WorkflowID string
	Payload    json.RawMessage
	// Files are the ids of files of the workspace, by the member of the payload that
	// refers to each.
	Files map[string]string
	// Depth is the number of ancestors of the new run.
	Depth int
	// Draft is a definition to run instead of the saved one; nil for none.
	Draft *workflow.Unsaved
	// Trigger is the one that the run of a draft pretends was fired, without a payload. The
	// zero value is a manual start.
	Trigger Trigger
	// Watch prepares a call of Await.
	Watch bool
}

// Started is a run that was started and, if it is watched, a channel that is
// closed when it ends. The watch begins before the run does, so it misses nothing.
type Started struct {
	Detail
	ended <-chan *Detail
}

// Prepared is a run that is ready to be started.
type Prepared struct {
	start Start
	watch bool
}

// Commit starts a prepared run, which is durable when Commit returns or, inside a
// transaction, when that is committed. It returns false if the workflow has
// changed since the run was prepared; then prepare it again.
func (s *Service) Commit(ctx context.Context, p *Prepared) (Started, bool, error) {
	return s.tryStart(ctx, p.start, p.watch)
}

// PrepareStart prepares a run of the current version. It may compile the
// version, so it must not be called inside a transaction.
func (s *Service) PrepareStart(ctx context.Context, actor auth.Actor, in Request) (*Prepared, error) {
	if in.Depth > action.MaxDepth {
		return nil, tooDeep()
	}
	trigger := in.Trigger
	trigger.Payload, trigger.Test = in.Payload, trigger.Type != ""
	if trigger.Type == "" {
		trigger.Type = Manual
	}
	if err := s.addFiles(ctx, actor.Workspace.ID, &trigger, in.Files); err != nil {
		return nil, err
	}
	r := Run{WorkspaceID: actor.Workspace.ID, WorkflowID: in.WorkflowID, Trigger: trigger, Depth: in.Depth, Draft: in.Draft != nil, StartedBy: starter(actor)}
	return s.prepared(ctx, Start{Run: r, Draft: in.Draft}, in.Watch)
}

// prepared fills in a run. Without a version it gets the current one, and without
// an id a new one.
func (s *Service) prepared(ctx context.Context, start Start, watch bool) (*Prepared, error) {
	if err := s.prepare(ctx, &start); err != nil {
		return nil, err
	}
	return &Prepared{start: start, watch: watch}, nil
}

// Start prepares and starts a run of the current version.
func (s *Service) Start(ctx context.Context, actor auth.Actor, in Request) (Started, error) {
	return s.startPrepared(ctx, func() (*Prepared, error) { return s.PrepareStart(ctx, actor, in) })
}

// startPrepared prepares and starts a run, again if the workflow changes in between.
func (s *Service) startPrepared(ctx context.Context, prepare func() (*Prepared, error)) (Started, error) {
	for {
		prepared, err := prepare()
		if err != nil {
			return Started{}, err
		}
		started, committed, err := s.Commit(ctx, prepared)
		if err != nil || committed {
			return started, err
		}
	}
}

// prepare fills in what a start needs from its workflow. A cached workflow is good
// enough to accept a run, but not to reject it.
func (s *Service) prepare(ctx context.Context, start *Start) error {
	cached := *start
	if s.prepareBy(ctx, s.store.CachedWorkflowRef, &cached) == nil {
		*start = cached
		return nil
	}
	return s.prepareBy(ctx, s.store.WorkflowRef, start)
}

func (s *Service) prepareBy(ctx context.Context, find findRef, start *Start) error {
	r := &start.Run
	ref, err := refBy(ctx, find, r.WorkspaceID, r.WorkflowID)
	if err != nil {
		return err
	}
	switch {
	case start.Fire != nil && ref.State != workflow.Active:
		return ErrNotDue
	case ref.State == workflow.Paused:
		return fault.New(fault.WorkflowPaused, "workflow %q is paused: activate it to run it", r.WorkflowID)
	}
	if r.Trigger.Payload, err = checkPayload(ref.Plan, r.Trigger.Payload); err != nil {
		return err
	}
	if r.WorkflowVersion == 0 {
		r.WorkflowVersion = ref.Version
	}
	if start.reuse != nil {
		if start.Steps, err = start.reuse(ctx, r.WorkflowVersion); err != nil {
			return err
		}
	}
	start.Revision, start.WorkflowName, start.Plan = ref.Revision, ref.Name, ref.Plan
	if err := start.hold(); err != nil {
		return err
	}
	return s.complete(ctx, start)
}

// complete fills in what depends on the current time and on the program.
func (s *Service) complete(ctx context.Context, start *Start) error {
	r := &start.Run
	r.Status, r.StartedAt = Running, clock.Now()
	if r.ID == "" {
		r.ID = uid.At(uid.Run, r.StartedAt)
	}
	// Draft runs do not count towards the concurrency limit.
	if start.Draft != nil {
		start.Level = start.Draft.Definition.Level
	} else if err := s.applyProgram(ctx, start); err != nil {
		return err
	}
	var err error
	start.Event, err = StartedEvent(*r, start.WorkflowName)
	return err
}

// applyProgram sets the level of a run, its concurrency limit and its key.
func (s *Service) applyProgram(ctx context.Context, start *Start) error {
	r := &start.Run
	program, err := s.programs.Get(ctx, r.WorkflowID, r.WorkflowVersion)
	if err != nil && !errors.Is(err, workflow.ErrCorrupt) {
		return err
	}
	// A version that cannot be read fails the run later, where users see it.
	if program == nil {
		return nil
	}
	start.Level = program.Level
	if program.Concurrency == nil {
		return nil
	}
	start.Concurrency = program.Concurrency
	r.ConcurrencyKey, err = evalKey(*r, program.Concurrency, start.WorkflowName)
	return err
}

// tryStart writes the run. It returns false if the workflow has changed in the
// meantime.
func (s *Service) tryStart(ctx context.Context, start Start, watch bool) (Started, bool, error) {
	r := start.Run
	if r.Parent == nil {
		if err := s.admit(); err != nil {
			return Started{}, false, err
		}
	}
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
	if ok && start.Concurrency != nil {
		if found, err := s.store.Run(ctx, r.WorkspaceID, r.ID); err == nil && found != nil {
			started.HeldBack = found.HeldBack
		}
	}
	switch {
	case errors.Is(err, ErrQueueFull):
		err = queueFull(start.Plan)
	case errors.Is(err, ErrAtLimit):
		err = fault.New(fault.ConcurrencyLimit, "the concurrency limit of %d%s of workflow %q is reached: try again when a run has ended",
			start.Concurrency.Limit, forKey(r.ConcurrencyKey), r.WorkflowID)
	}
	return started, ok, err
}

func queueFull(plan auth.Plan) error {
	return fault.New(fault.RunQueueFull, "%d runs are queued, the most the %s plan allows: try again later",
		plan.Limits().QueuedRuns, plan).After(time.Second)
}

// maxKeyBytes bounds the concurrency key of a run.
const maxKeyBytes = 500

func evalKey(r Run, limit *workflow.ConcurrencyLimit, workflowName string) (string, error) {
	if limit.Key == nil {
		return keyPrefix, nil
	}
	trigger, err := r.Trigger.Seen()
	if err != nil {
		return "", fault.Field("/payload", "is not JSON")
	}
	value, err := limit.Key.Eval(&expr.Env{
		Trigger:  trigger,
		Run:      expr.Run{ID: r.ID, StartedAt: r.StartedAt},
		Workflow: expr.Workflow{ID: r.WorkflowID, Name: workflowName, Version: r.WorkflowVersion},
		Now:      r.StartedAt,
	}, expr.Budget{})
	if err != nil {
		return "", fault.New(fault.InvalidRequest, "cannot evaluate the concurrency key of the workflow for this run: %s", err)
	}
	if value == nil {
		value = ""
	}
	key := keyPrefix + fmt.Sprint(value)
	if len(key) > maxKeyBytes {
		return "", fault.New(fault.InvalidRequest, "the concurrency key of this run has more than %d bytes: use a shorter expression", maxKeyBytes)
	}
	return key, nil
}

// watch watches a run until the context ends.
func (s *Service) watch(ctx context.Context, runID string) <-chan *Detail {
	ended, stop := s.completions.Watch(runID)
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

// Watch watches a run that was already started.
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

// Await waits until a watched run has ended, for at most the given time, and
// returns its state.
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
