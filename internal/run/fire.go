package run

import (
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
)

// Fire holds the changes of a trigger that starts a run. They are written in the
// transaction of the run; if one of the conditions does not hold, nothing is
// written.
type Fire struct {
	At time.Time
	// Was and Next are for triggers that fire by time: the stored time must be Was,
	// and becomes Next.
	Was  *time.Time
	Next *time.Time
	// EventID is the event that the run is for: its pending event must exist, and is
	// deleted when the run starts.
	EventID string
	// Dedupe is a key that no earlier run of the trigger may have; nil for none.
	Dedupe *Dedupe
	// NotFired records why other firings were skipped; nil for none.
	NotFired *NotFired
	// State is the new state of the trigger; nil leaves it unchanged.
	State []byte
}

// NotFired is the reason why a trigger did not start a run.
type NotFired struct {
	Code    string
	Message string
}

// Dedupe is a deduplication key, stored until it expires.
type Dedupe struct {
	Hash  []byte
	Until time.Time
}

// ErrNotDue is returned for a trigger that does not fire, because its workflow is
// not active or because it has already fired.
var ErrNotDue = errors.New("the trigger is not due")

// DuplicateError is returned for a deduplication key that was already used. RunID
// is the run that it started.
type DuplicateError struct{ RunID string }

func (e *DuplicateError) Error() string { return "duplicate: the key already started run " + e.RunID }

// Firing is a request of a trigger to start a run.
type Firing struct {
	WorkspaceID string
	WorkflowID  string
	Trigger     Trigger
	// Files are the files that came with the payload. They are recorded with the run.
	Files []file.File
	// Depth is the number of ancestors of the new run.
	Depth int
	// Watch prepares a call of Await.
	Watch bool
	Fire  Fire
}

// Fire starts a run of the current version if the workflow is active and all
// conditions hold. Otherwise it fails with ErrNotDue or a DuplicateError. It also
// fails for the same reasons as Start.
func (s *Service) Fire(ctx context.Context, f Firing) (Started, error) {
	if f.Depth > action.MaxDepth {
		return Started{}, tooDeep()
	}
	r := Run{WorkspaceID: f.WorkspaceID, WorkflowID: f.WorkflowID, Trigger: f.Trigger, Depth: f.Depth}
	return s.startPrepared(ctx, func() (*Prepared, error) {
		return s.prepared(ctx, Start{Run: r, Files: f.Files, Fire: &f.Fire}, f.Watch)
	})
}

// PrepareTest prepares a run as if a trigger had fired, with files of the workspace in
// its payload.
func (s *Service) PrepareTest(ctx context.Context, actor auth.Actor, workflowID string, trigger Trigger, files map[string]string, watch bool) (*Prepared, error) {
	trigger.Test = true
	if err := s.addFiles(ctx, actor.Workspace.ID, &trigger, files); err != nil {
		return nil, err
	}
	return s.prepared(ctx, Start{Run: Run{WorkspaceID: actor.Workspace.ID, WorkflowID: workflowID, Trigger: trigger, StartedBy: starter(actor)}}, watch)
}

func tooDeep() error {
	return fault.New(fault.ChainDepthExceeded,
		"this run would have more than %d ancestors: check whether workflows start one another in a cycle", action.MaxDepth)
}
