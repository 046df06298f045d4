package run

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
)

// Kept is a workflow whose runs are kept as the plan of its workspace says.
type Kept struct {
	WorkflowID string
	Plan       auth.Plan
}

// Expired are runs that have been kept long enough. Next is the last run that
// was looked at, empty when there is none after it that could have expired.
type Expired struct {
	IDs  []string
	Next string
}

// PruneStore is what removing old runs needs of the store.
type PruneStore interface {
	// NextKept returns the workflow with the least id after the given one.
	NextKept(ctx context.Context, after string) (*Kept, error)
	// Expired looks at up to limit runs of a workflow that started after the
	// given one, oldest first.
	Expired(ctx context.Context, workflowID string, keep auth.Retention, now time.Time, after string, limit int) (Expired, error)
	// PurgeRuns removes finished runs for as long as that takes no more than
	// limit rows and a moment, and returns those it did not come to.
	PurgeRuns(ctx context.Context, workflowID string, ids []string, limit int) (left []string, err error)
}

// pruneLook is how many runs are looked at together.
const pruneLook = 500

// Pruner removes runs that have been kept long enough, in small batches, going
// through all workflows in order. It is for use by one goroutine.
type Pruner struct {
	store PruneStore
	keep  func(auth.Plan) auth.Retention

	of      Kept     // the workflow that it is at; empty at the beginning
	looking bool     // there may be more in that workflow
	after   string   // the run that it looked at last
	ids     []string // runs to remove before it goes on
}

// NewPruner makes a pruner; keep says how much of the past a plan keeps.
func NewPruner(store PruneStore, keep func(auth.Plan) auth.Retention) *Pruner {
	return &Pruner{store: store, keep: keep}
}

// Batch removes the next few runs, up to limit rows. It answers false once it
// has been through all workflows; after that it begins anew.
func (p *Pruner) Batch(ctx context.Context, now time.Time, limit int) (bool, error) {
	for len(p.ids) == 0 {
		found, err := p.look(ctx, now)
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

// look reads on: the next runs of the workflow, or else the next workflow. It
// answers false after the last one.
func (p *Pruner) look(ctx context.Context, now time.Time) (bool, error) {
	if !p.looking {
		next, err := p.store.NextKept(ctx, p.of.WorkflowID)
		if err != nil {
			return false, err
		}
		p.of, p.after, p.looking = Kept{}, "", next != nil
		if next == nil {
			return false, nil
		}
		p.of = *next
	}
	found, err := p.store.Expired(ctx, p.of.WorkflowID, p.keep(p.of.Plan), now, p.after, pruneLook)
	if err != nil {
		return false, err
	}
	p.ids, p.after, p.looking = found.IDs, found.Next, found.Next != ""
	return true, nil
}
