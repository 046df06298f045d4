package run

import (
	"cmp"
	"context"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
)

// Retry starts a new run in the place of one that failed or was cancelled: of
// the same version, with the same payload and the steps that came to a good
// end.
func (s *Service) Retry(ctx context.Context, actor auth.Actor, id string, watch bool) (Started, error) {
	source, err := s.Get(ctx, actor, id)
	if err != nil {
		return Started{}, err
	}
	if source.Status != Failed && source.Status != Cancelled {
		return Started{}, fault.New(fault.RunNotRetryable, "run %q is %s: only a failed or cancelled run can be retried", id, source.Status)
	}
	plan, err := PlanOf(ctx, s.plans, source.Run)
	if err != nil {
		return Started{}, err
	}
	if plan == nil {
		return Started{}, notFound(id)
	}
	start := Start{Run: Run{
		WorkspaceID: source.WorkspaceID, WorkflowID: source.WorkflowID, WorkflowVersion: source.WorkflowVersion,
		Trigger: source.Trigger, RetryOf: source.ID, Depth: source.Depth, Draft: source.Draft,
	}, Steps: Inherit(plan, source)}
	if source.Draft {
		start.Draft, err = s.store.Draft(ctx, source.ID)
		if err != nil || start.Draft == nil { // it has just been removed
			return Started{}, cmp.Or(err, notFound(id))
		}
	}
	started, err := s.begin(ctx, start, watch)
	if fault.Is(err, fault.WorkflowNotFound) {
		// It was deleted a moment ago, and its runs with it.
		err = notFound(id)
	}
	return started, err
}
