package run

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
)

// RetainedWorkflow is a workflow and the plan that determines how long its runs are kept.
type RetainedWorkflow struct {
	WorkflowID string
	Plan       auth.Plan
}

// Expired are runs whose retention has ended. Next is the last run that was
// examined; empty if no later run can have expired.
type Expired struct {
	IDs  []string
	Next string
}

// PruneStore is the store of a Pruner.
type PruneStore interface {
	// NextRetained returns the workflow with the smallest id after the given one.
	NextRetained(ctx context.Context, after string) (*RetainedWorkflow, error)
	// Expired examines up to limit runs of a workflow that started after the given
	// one, oldest first.
	Expired(ctx context.Context, workflowID string, keep auth.Retention, now time.Time, after string, limit int) (Expired, error)
	// PurgeRuns deletes finished runs, up to limit rows and for a short time, and
	// returns the runs that remain.
	PurgeRuns(ctx context.Context, workflowID string, ids []string, limit int) (left []string, err error)
}

// pruneBatch is the number of runs read at a time.
const pruneBatch = 500

// Pruner deletes expired runs in small batches, one workflow after another. It is
// not safe for concurrent use.
type Pruner struct {
	store PruneStore
	keep  func(auth.Plan) auth.Retention

	of      RetainedWorkflow // the current workflow; empty at the beginning
	hasMore bool             // there may be more in that workflow
	after   string           // the run that it looked at last
	ids     []string         // runs to delete next
}

// NewPruner returns a pruner; keep returns the retention of a plan.
func NewPruner(store PruneStore, keep func(auth.Plan) auth.Retention) *Pruner {
	return &Pruner{store: store, keep: keep}
}

// Batch deletes the next runs, up to limit rows. It returns false after the last
// workflow; the next call starts over.
func (p *Pruner) Batch(ctx context.Context, now time.Time, limit int) (bool, error) {
	for len(p.ids) == 0 {
		found, err := p.lookup(ctx, now)
		if err != nil || !found {
			return false, err
		}
	}
	left, err := p.store.PurgeRuns(ctx, p.of.WorkflowID, p.ids, limit)
	if err != nil {
		return false, err
	}
	p.ids = left
	return true, nil
}

// lookup reads the next runs of the workflow, or moves on to the next workflow. It
// returns false after the last one.
func (p *Pruner) lookup(ctx context.Context, now time.Time) (bool, error) {
	if !p.hasMore {
		next, err := p.store.NextRetained(ctx, p.of.WorkflowID)
		if err != nil {
			return false, err
		}
		p.of, p.after, p.hasMore = RetainedWorkflow{}, "", next != nil
		if next == nil {
			return false, nil
		}
		p.of = *next
	}
	found, err := p.store.Expired(ctx, p.of.WorkflowID, p.keep(p.of.Plan), now, p.after, pruneBatch)
	if err != nil {
		return false, err
	}
	p.ids, p.after, p.hasMore = found.IDs, found.Next, found.Next != ""
	return true, nil
}
