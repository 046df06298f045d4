package run

import "github.com/stepmill/stepmill/internal/workflow"

// Slots reads the runs of a concurrency key. They do not change while a start is
// being decided on.
type Slots interface {
	// Admitted counts the runs that hold a slot, Queued those that wait for one.
	Admitted() (int, error)
	Queued() (int, error)
	// Ancestor reads a run that waits for the new one; nil if it does not exist.
	Ancestor(runID string) (*Run, error)
}

// Admission is the outcome for a new run under a concurrency limit.
type Admission struct {
	// Admitted reports whether the run gets a slot. Otherwise it is queued.
	Admitted bool
	// CancelOldest is how many of the oldest admitted runs to cancel first.
	CancelOldest int
}

// Admit decides what happens to a new run: it gets a slot if one is free; at the
// limit it is queued, replaces the oldest runs, or is rejected with ErrAtLimit or
// ErrQueueFull.
func (s Start) Admit(slots Slots) (Admission, error) {
	inUse, err := slots.Admitted()
	if err != nil || inUse < s.Concurrency.Limit {
		return Admission{Admitted: true}, err
	}
	if err := s.checkAncestors(slots); err != nil {
		return Admission{}, err
	}
	switch s.Concurrency.OnLimit {
	case workflow.Drop:
		return Admission{}, ErrAtLimit
	case workflow.CancelRunning:
		return Admission{Admitted: true, CancelOldest: inUse - s.Concurrency.Limit + 1}, nil
	default:
		queued, err := slots.Queued()
		if err == nil && queued >= s.Plan.Limits().QueuedRuns {
			err = ErrQueueFull
		}
		return Admission{}, err
	}
}

// checkAncestors rejects a run that would wait for, or cancel, an ancestor that
// waits for it.
func (s Start) checkAncestors(slots Slots) error {
	for parent := s.Run.Parent; parent != nil && parent.Waits; {
		above, err := slots.Ancestor(parent.RunID)
		if err != nil || above == nil {
			return err
		}
		if above.WorkflowID == s.Run.WorkflowID && above.ConcurrencyKey == s.Run.ConcurrencyKey {
			return ErrAtLimit
		}
		parent = above.Parent
	}
	return nil
}
