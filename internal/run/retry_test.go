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

// deletedWorkflowStore is a store whose workflow is deleted between two reads.
type deletedWorkflowStore struct {
	run.Store
	detail run.Detail
}

func (v deletedWorkflowStore) Run(context.Context, string, string) (*run.Detail, error) {
	return &v.detail, nil
}

func (v deletedWorkflowStore) WorkflowRef(context.Context, string, string) (*run.WorkflowRef, error) {
	return nil, nil
}

func (v deletedWorkflowStore) CachedWorkflowRef(context.Context, string, string) (*run.WorkflowRef, error) {
	return nil, nil
}

func (v deletedWorkflowStore) Get(context.Context, string, int) (*workflow.Program, error) {
	return &workflow.Program{}, nil
}

func (v deletedWorkflowStore) OfDraft(context.Context, string) (*workflow.Program, error) {
	return &workflow.Program{}, nil
}

// A run whose workflow is deleted during a retry is not found.
func TestRetryWhileWorkflowIsDeleted(t *testing.T) {
	t.Parallel()
	store := deletedWorkflowStore{detail: run.Detail{Run: run.Run{ID: uid.New(uid.Run), WorkflowID: uid.New(uid.Workflow), WorkflowVersion: 1, Status: run.Failed}}}
	service := run.NewService(store, store, nil, nil, nil)
	if _, err := service.Retry(t.Context(), auth.Actor{}, store.detail.ID, run.RetryOptions{}); !fault.Is(err, fault.RunNotFound) {
		t.Errorf("got %v", err)
	}
}

// deletedDraftStore is a store whose draft run is deleted between two reads, while its
// program is still cached.
type deletedDraftStore struct{ deletedWorkflowStore }

func (deletedDraftStore) Draft(context.Context, string) (*workflow.Unsaved, error) { return nil, nil }

func (deletedDraftStore) WorkflowRef(context.Context, string, string) (*run.WorkflowRef, error) {
	return &run.WorkflowRef{Version: 1}, nil
}

func (deletedDraftStore) StartRun(context.Context, run.Start) (bool, error) {
	panic("a run of a draft has nothing to execute")
}

func TestRetryWhileDraftIsDeleted(t *testing.T) {
	t.Parallel()
	store := deletedDraftStore{deletedWorkflowStore{detail: run.Detail{Run: run.Run{ID: uid.New(uid.Run), WorkflowID: uid.New(uid.Workflow), WorkflowVersion: 1, Status: run.Failed, Draft: true}}}}
	service := run.NewService(store, store, nil, nil, nil)
	if _, err := service.Retry(t.Context(), auth.Actor{}, store.detail.ID, run.RetryOptions{}); !fault.Is(err, fault.RunNotFound) {
		t.Errorf("got %v", err)
	}
}

// editedWorkflowStore is a store whose workflow gets a new version while a retry is
// being written.
type editedWorkflowStore struct {
	run.Store
	detail  run.Detail
	version *int
	started *run.Start
}

func (e editedWorkflowStore) Run(context.Context, string, string) (*run.Detail, error) {
	return &e.detail, nil
}

func (e editedWorkflowStore) WorkflowRef(context.Context, string, string) (*run.WorkflowRef, error) {
	return &run.WorkflowRef{Version: *e.version, State: workflow.Active}, nil
}

func (e editedWorkflowStore) CachedWorkflowRef(ctx context.Context, workspaceID, workflowID string) (*run.WorkflowRef, error) {
	return e.WorkflowRef(ctx, workspaceID, workflowID)
}

// Get returns programs in which the step "a" changes with version 3.
func (e editedWorkflowStore) Get(_ context.Context, _ string, version int) (*workflow.Program, error) {
	program := flatProgram("a", "b")
	if version > 2 {
		program.Steps[0].If = "true"
	}
	return program, nil
}

func (e editedWorkflowStore) OfDraft(context.Context, string) (*workflow.Program, error) {
	return nil, nil
}

func (e editedWorkflowStore) StartRun(_ context.Context, start run.Start) (bool, error) {
	if *e.version == 2 {
		*e.version = 3
		return false, nil
	}
	*e.started = start
	return true, nil
}

func (editedWorkflowStore) Reserve(string, string, int) (string, bool) { return "", true }
func (editedWorkflowStore) Unreserve(string)                           {}

// The reused steps are picked for the version that the retry is written with.
func TestRetryWhileWorkflowChanges(t *testing.T) {
	t.Parallel()
	version := 2
	store := editedWorkflowStore{detail: ended("a succeeded", "b succeeded"), version: &version, started: &run.Start{}}
	store.detail.ID, store.detail.WorkflowID, store.detail.WorkflowVersion = uid.New(uid.Run), uid.New(uid.Workflow), 1
	service := run.NewService(store, store, nil, store, nil)
	if _, err := service.Retry(t.Context(), auth.Actor{}, store.detail.ID, run.RetryOptions{Version: run.RetryCurrent}); err != nil {
		t.Fatal(err)
	}
	if got := store.started; got.Run.WorkflowVersion != 3 || len(got.Steps) != 1 || got.Steps[0].Path != "b" {
		t.Errorf("version %d reuses %+v", got.Run.WorkflowVersion, got.Steps)
	}
}
