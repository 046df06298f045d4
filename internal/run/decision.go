package run

import (
	"time"

	"github.com/stepmill/stepmill/internal/event"
)

// Lease is the right to move a run forward. The epoch fences: once somebody
// else took the run over, or it was cancelled or deleted, nothing that holds
// the old epoch can write.
type Lease struct {
	RunID string
	Epoch int64
}

// Wake says that a run has something to do.
type Wake struct {
	RunID       string
	WorkspaceID string
	WorkflowID  string
	// Epoch is the one that the run had when the wake-up was made.
	Epoch int64
	At    time.Time
	// Owned says that this node holds the run already, so that no activation
	// has to be written: it has just been started here.
	Owned bool
	// Fresh is the run itself when it has just been started here and is small
	// enough to be kept until it is taken up: it need not be read again.
	Fresh *Snapshot
}

// Decision is everything that follows from one move of a run. It is committed
// as a whole or not at all.
type Decision struct {
	// Steps are the rows to write, as they are from now on.
	Steps []Step
	// Attempts are those that failed and will be repeated.
	Attempts []Attempt
	// Executing are the paths of the steps that start after the commit.
	Executing []string
	// Release gives the lease back; the run wakes at WakeAt.
	Release bool
	WakeAt  time.Time
	// Finish ends the run.
	Finish *Finish
}

// Finish is the end of a run.
type Finish struct {
	Status Status
	Error  *Failure
	At     time.Time
	Event  event.Event
}

// Empty tells whether the decision changes nothing.
func (d Decision) Empty() bool {
	return len(d.Steps) == 0 && len(d.Attempts) == 0 && len(d.Executing) == 0 && !d.Release && d.Finish == nil
}
