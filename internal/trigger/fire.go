package trigger

import (
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Programs returns compiled versions of workflows.
type Programs interface {
	Get(ctx context.Context, workflowID string, version int) (*workflow.Program, error)
}

// Values provides the secrets and variables that a trigger can refer to.
type Values interface {
	// Open decrypts the named secrets. It leaves out those that do not exist.
	Open(ctx context.Context, workspaceID string, names []string) (map[string]string, error)
	Vars(ctx context.Context, workspaceID string) (map[string]any, error)
}

// Batches starts several runs in one transaction.
type Batches interface {
	FireAll(ctx context.Context, b run.Batch) (started []string, err error)
}

// Compiled returns the compiled definition of a trigger that is due. A trigger
// whose definition is missing or unreadable is stopped, and the result is nil.
func Compiled(ctx context.Context, store Store, programs Programs, t Trigger, now time.Time) (*workflow.CompiledTrigger, error) {
	program, err := programs.Get(ctx, t.WorkflowID, t.Version)
	if err != nil && !errors.Is(err, workflow.ErrCorrupt) {
		return nil, err
	}
	if program != nil {
		if found := program.Trigger(t.ID); found != nil && workflow.FamilyOf(found.Type) == t.Type {
			return found, nil
		}
	}
	note := &Note{At: now, Code: CodeCorrupt, Message: "the definition of the trigger cannot be read: save the workflow again"}
	_, err = store.MoveTrigger(ctx, Move{Of: t, Error: note})
	return nil, err
}

// Rejection returns why a run was not started if retrying cannot help. It returns
// nil for temporary errors.
func Rejection(err error, now time.Time) *Note {
	rejected, ok := fault.As(err)
	if !ok || rejected.Code == fault.WorkflowNotFound || rejected.Code.Status() >= 500 {
		return nil
	}
	return &Note{At: now, Code: string(rejected.Code), Message: rejected.Message}
}

// Obsolete reports whether there is nothing left to do: another node was faster,
// or the workflow was deleted or is not active.
func Obsolete(err error) bool {
	return errors.Is(err, run.ErrNotDue) || fault.Is(err, fault.WorkflowNotFound)
}
