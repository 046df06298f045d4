package run_test

import (
	"context"
	"testing"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/uid"
	"github.com/stepmill/stepmill/internal/workflow"
)

// vanishing is a store whose workflow is deleted between two reads.
type vanishing struct {
	run.Store
	detail run.Detail
}

func (v vanishing) Run(context.Context, string, string) (*run.Detail, error) { return &v.detail, nil }

func (v vanishing) WorkflowHead(context.Context, string, string) (*run.Head, error) { return nil, nil }

func (v vanishing) LikelyHead(context.Context, string, string) (*run.Head, error) { return nil, nil }

func (v vanishing) Get(context.Context, string, int) (*workflow.Plan, error) {
	return &workflow.Plan{}, nil
}

func (v vanishing) OfDraft(context.Context, string) (*workflow.Plan, error) {
	return &workflow.Plan{}, nil
}

// A run whose workflow is deleted while it is being retried is not there.
func TestRetryOfWhatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	store := vanishing{detail: run.Detail{Run: run.Run{ID: uid.New(uid.Run), WorkflowID: uid.New(uid.Workflow), WorkflowVersion: 1, Status: run.Failed}}}
	service := run.NewService(store, store, nil, nil, nil)
	if _, err := service.Retry(t.Context(), auth.Actor{}, store.detail.ID, false); !fault.Is(err, fault.RunNotFound) {
		t.Errorf("got %v", err)
	}
}

// purged is a store from which a run of a draft is removed between two reads,
// while its plan is still known.
type purged struct{ vanishing }

func (purged) Draft(context.Context, string) (*workflow.Unsaved, error) { return nil, nil }

func (purged) WorkflowHead(context.Context, string, string) (*run.Head, error) {
	return &run.Head{Version: 1}, nil
}

func (purged) StartRun(context.Context, run.Start) (bool, error) {
	panic("a run of a draft has nothing to execute")
}

func TestRetryOfADraftThatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	store := purged{vanishing{detail: run.Detail{Run: run.Run{ID: uid.New(uid.Run), WorkflowID: uid.New(uid.Workflow), WorkflowVersion: 1, Status: run.Failed, Draft: true}}}}
	service := run.NewService(store, store, nil, nil, nil)
	if _, err := service.Retry(t.Context(), auth.Actor{}, store.detail.ID, false); !fault.Is(err, fault.RunNotFound) {
		t.Errorf("got %v", err)
	}
}
