package run

import (
	"cmp"
	"context"
	"errors"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/workflow"
)

// RetryVersion selects the version of the workflow that a retry executes.
type RetryVersion string

// The versions to choose from.
const (
	// RetryPinned selects the version that the run executed.
	RetryPinned RetryVersion = "pinned"
	// RetryCurrent selects the current version of the workflow.
	RetryCurrent RetryVersion = "current"
)

// Known reports whether v is one of them.
func (v RetryVersion) Known() bool { return v == RetryPinned || v == RetryCurrent }

// RetryOptions are the options of a retry.
type RetryOptions struct {
	// Version defaults to RetryPinned.
	Version RetryVersion
	// Watch prepares a call of Await.
	Watch bool
}

// PrepareRetry prepares a new run with the payload of a run that failed or was
// cancelled. It reuses the results of steps that succeeded. If it executes another
// version, it only reuses steps that do not depend on anything that changed.
func (s *Service) PrepareRetry(ctx context.Context, actor auth.Actor, id string, in RetryOptions) (*Prepared, error) {
	source, err := s.Get(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	if source.Status != Failed && source.Status != Cancelled {
		return nil, fault.New(fault.RunNotRetryable, "run %q is %s: only a failed or cancelled run can be retried", id, source.Status)
	}
	start := Start{Run: Run{
		WorkspaceID: source.WorkspaceID, WorkflowID: source.WorkflowID,
		Trigger: source.Trigger, RetryOf: source.ID, Depth: source.Depth, StartedBy: starter(actor),
	}}
	if in.Version == RetryCurrent {
		start.reuse = func(ctx context.Context, version int) ([]Step, error) { return s.reuseAcross(ctx, source, version) }
	} else if err := s.pinRetry(ctx, source, &start); err != nil {
		return nil, err
	}
	prepared, err := s.prepared(ctx, start, in.Watch)
	if fault.Is(err, fault.WorkflowNotFound) {
		// The workflow was just deleted, and its runs with it.
		err = notFound(id)
	}
	return prepared, err
}

// Retry prepares and starts a retry.
func (s *Service) Retry(ctx context.Context, actor auth.Actor, id string, in RetryOptions) (Started, error) {
	return s.startPrepared(ctx, func() (*Prepared, error) { return s.PrepareRetry(ctx, actor, id, in) })
}

// pinRetry makes a start execute the version that the run executed.
func (s *Service) pinRetry(ctx context.Context, source Detail, start *Start) error {
	program, err := ProgramOf(ctx, s.programs, source.Run)
	if err != nil {
		return err
	}
	if program == nil {
		return notFound(source.ID)
	}
	start.Run.WorkflowVersion, start.Run.Draft, start.Steps = source.WorkflowVersion, source.Draft, ReuseSteps(program, source, nil)
	if source.Draft {
		start.Draft, err = s.store.Draft(ctx, source.ID)
		if err != nil || start.Draft == nil { // it has just been removed
			return cmp.Or(err, notFound(source.ID))
		}
	}
	return nil
}

// reuseAcross picks the steps that a retry with the given version reuses. If one of
// the versions no longer compiles, it reuses nothing, because it cannot tell what
// changed.
func (s *Service) reuseAcross(ctx context.Context, source Detail, version int) ([]Step, error) {
	now, err := s.programs.Get(ctx, source.WorkflowID, version)
	if err != nil || now == nil {
		return nil, unlessCorrupt(err)
	}
	if version == source.WorkflowVersion && !source.Draft {
		return ReuseSteps(now, source, nil), nil
	}
	was, err := ProgramOf(ctx, s.programs, source.Run)
	switch {
	case err != nil:
		return nil, unlessCorrupt(err)
	case was == nil: // the run has just been removed
		return nil, notFound(source.ID)
	}
	return ReuseSteps(now, source, workflow.ReusableSteps(was, now)), nil
}

func unlessCorrupt(err error) error {
	if errors.Is(err, workflow.ErrCorrupt) {
		return nil
	}
	return err
}
