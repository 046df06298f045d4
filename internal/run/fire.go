package run

import (
	"context"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
)

// Fire is what a trigger that starts a run changes of itself. It is written in
// the unit of the run; when one of its conditions does not hold, nothing is.
type Fire struct {
	At time.Time
	// Was and Next are for a trigger that fires by time: its time has to be Was,
	// and becomes Next.
	Was  *time.Time
	Next *time.Time
	// EventID is the event that the run is for: the occasion has to be there, and
	// is gone with the run.
	EventID string
	// Dedupe is a key that no run of the trigger may have had; nil for none.
	Dedupe *Dedupe
	// Idle is what is recorded beside it: why other times were left out; nil for
	// nothing.
	Idle *Idle
	// State is how far the trigger has come; nil: as it is.
	State []byte
}

// Idle is why a trigger did not start a run.
type Idle struct {
	Code    string
	Message string
}

// Dedupe is a key that tells calls apart, kept until a time.
type Dedupe struct {
	Hash  []byte
	Until time.Time
}

// ErrNotArmed says that a trigger does not fire: its workflow is not active, or
// somebody else was faster.
var ErrNotArmed = errors.New("the trigger is not due")

// DuplicateError says that a key was used before, and for which run.
type DuplicateError struct{ RunID string }

func (e *DuplicateError) Error() string { return "the same was sent before: it started run " + e.RunID }

// Firing asks for a run on behalf of a trigger.
type Firing struct {
	WorkspaceID string
	WorkflowID  string
	Trigger     Trigger
	// Depth is how many runs stand above the new one.
	Depth int
	// Watch says that somebody will wait for the end of the run.
	Watch bool
	Fire  Fire
}

// Fire starts a run of the current version, if the workflow is active and all
// conditions hold. It fails with ErrNotArmed or a DuplicateError when they do
// not, and like Start for other reasons.
func (s *Service) Fire(ctx context.Context, f Firing) (Started, error) {
	if f.Depth > action.MaxDepth {
		return Started{}, tooDeep()
	}
	r := Run{WorkspaceID: f.WorkspaceID, WorkflowID: f.WorkflowID, Trigger: f.Trigger, Depth: f.Depth}
	return s.begin(ctx, Start{Run: r, Fire: &f.Fire}, f.Watch)
}

// Try starts a run as if a trigger had fired, to try the workflow out.
func (s *Service) Try(ctx context.Context, actor auth.Actor, workflowID string, trigger Trigger, watch bool) (Started, error) {
	trigger.Test = true
	return s.begin(ctx, Start{Run: Run{WorkspaceID: actor.Workspace.ID, WorkflowID: workflowID, Trigger: trigger}}, watch)
}

func tooDeep() error {
	return fault.New(fault.ChainDepthExceeded,
		"more than %d runs would stand above this one: runs seem to start one another in a circle", action.MaxDepth)
}
