package run

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/uid"
)

// Answer is the answer to a step that waits for one.
type Answer struct {
	WorkspaceID string
	RunID       string
	StepID      string
	Value       json.RawMessage
	At          time.Time
	// Early allows the answer before the step begins to wait.
	Early bool
	Entry audit.Entry
}

// Approval is a step that waits for an answer.
type Approval struct {
	RunID        string
	StepID       string
	WorkflowID   string
	WorkflowName string
	StepName     string
	Input        json.RawMessage
	Since        time.Time
	Until        *time.Time
}

// Resumption is the content of an answer.
type Resumption struct {
	Approved bool
	Comment  string
	Data     json.RawMessage
}

const maxComment = 4000

// Resume answers a step that waits for an answer. The first answer counts.
func (s *Service) Resume(ctx context.Context, actor auth.Actor, runID, stepID string, in Resumption) (Detail, error) {
	value, err := in.value(actor)
	if err != nil {
		return Detail{}, err
	}
	detail, err := s.Get(ctx, actor, runID)
	if err != nil {
		return Detail{}, err
	}
	i := slices.IndexFunc(detail.Steps, func(step Step) bool { return step.Path == stepID })
	if i < 0 {
		return Detail{}, fault.New(fault.StepNotFound, "run %q has no step %q so far", runID, stepID)
	}
	answered, err := s.store.AnswerStep(ctx, Answer{
		WorkspaceID: actor.Workspace.ID, RunID: runID, StepID: stepID, Value: value, At: clock.Now(),
		Entry: actor.AuditEntry("run.answered", "run", runID, map[string]any{"step_id": stepID, "approved": in.Approved}),
	})
	if err != nil {
		return Detail{}, err
	}
	after, err := s.Get(ctx, actor, runID)
	if err == nil && !answered {
		err = notWaiting(after.Steps[i])
	}
	return after, err
}

// value encodes the answer. It becomes the output of the step.
func (in Resumption) value(actor auth.Actor) (json.RawMessage, error) {
	comment, err := fault.Text("/comment", in.Comment, maxComment)
	if err != nil {
		return nil, err
	}
	value, err := strictjson.Encode(map[string]any{"approved": in.Approved, "by": actor.Name(), "comment": comment, "data": in.Data})
	if err != nil {
		return nil, err
	}
	if limit := actor.Limits().OutputBytes; len(value) > limit {
		return nil, fault.New(fault.PayloadTooLarge, "the answer has %d bytes; the %s plan allows at most %d", len(value), actor.Workspace.Plan, limit).
			With(fault.Detail{Pointer: "/data", Message: "is too large"})
	}
	return value, nil
}

func notWaiting(step Step) error {
	if step.Status == StepWaiting && step.Awaits == action.AwaitsAnswer {
		return fault.New(fault.StepNotWaiting, "step %q has already been answered", step.Path)
	}
	return fault.New(fault.StepNotWaiting, "step %q is not waiting for an answer: its type is %s and its status is %s", step.Path, step.Type, step.Status)
}

// Approvals lists the steps of a workspace that wait for an answer, newest runs
// first.
func (s *Service) Approvals(ctx context.Context, actor auth.Actor, page paging.Request) (paging.Page[Approval], error) {
	return s.store.Approvals(ctx, actor.Workspace.ID, page)
}

// Logs lists the log lines of a run, or of one of its steps, oldest first.
func (s *Service) Logs(ctx context.Context, actor auth.Actor, runID, stepID string, page paging.Request) (paging.Page[LogLine], error) {
	if !uid.Valid(uid.Run, runID) {
		return paging.Page[LogLine]{}, notFound(runID)
	}
	lines, exists, err := s.store.Logs(ctx, actor.Workspace.ID, runID, stepID, page)
	if err == nil && !exists {
		err = notFound(runID)
	}
	return lines, err
}

// StepAnswer is the answer to a step as it is stored.
type StepAnswer struct {
	Value json.RawMessage
	Files []string // the JSON pointers of the references to files inside Value
}
