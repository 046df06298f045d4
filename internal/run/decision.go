package run

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
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
	// Plan is that of the workspace: it says how many runs are executed at a time.
	Plan auth.Plan
	// Crashes is how often a process has died while it executed the same steps
	// of the run.
	Crashes int
	// Owned says that this node holds the run already, so that no activation
	// has to be written: it has just been started here.
	Owned bool
	// Fresh is the run itself when it has just been started here and is small
	// enough to be kept until it is taken up: it need not be read again.
	Fresh *Snapshot
}

// Runs under suspicion: after crashesToIsolate crashes at the same steps a run
// is executed by itself, so that it is clear which one it is; after
// crashesToQuarantine it is given up.
const (
	crashesToIsolate    = 2
	crashesToQuarantine = 5
)

// Isolated tells that the run may only be executed while no other suspect is.
func (w Wake) Isolated() bool { return w.Crashes >= crashesToIsolate }

// Quarantined tells that the run may not be executed any more.
func (w Wake) Quarantined() bool { return w.Crashes >= crashesToQuarantine }

// Decision is everything that follows from one move of a run. It is committed
// as a whole or not at all.
type Decision struct {
	// Rev numbers the commits of the run.
	Rev int
	// Steps are the rows to write, as they are from now on.
	Steps []Step
	// Unanswered are the paths of steps that are settled because no answer came:
	// nothing is written when one has.
	Unanswered []string
	// Attempts are those that failed and will be repeated.
	Attempts []Attempt
	// Logs are the lines that steps have written.
	Logs []LogLine
	// Executing are the paths of the steps that start after the commit.
	Executing []string
	// Ran is how long steps have been executed so far.
	Ran time.Duration
	// Logged is the size of all lines so far, in bytes.
	Logged int
	// Acquit says that a run under suspicion got past where it was caught.
	Acquit bool
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
	// Output is that of the run, for a run above it that waits.
	Output json.RawMessage
	// CutShort says that steps were open: runs that they wait for end too.
	CutShort bool
}

// ErrAnswered says that a decision takes for unanswered what has its answer.
var ErrAnswered = errors.New("an answer has come")

// Empty tells whether the decision changes nothing.
func (d Decision) Empty() bool {
	return len(d.Steps) == 0 && len(d.Attempts) == 0 && len(d.Executing) == 0 && !d.Release && d.Finish == nil
}
