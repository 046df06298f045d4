package run

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/internal/file"
)

// Lease is the right to move a run forward. The epoch is a fencing token: once
// another node has taken over the run, or it was cancelled or deleted, writes with
// an older epoch are rejected.
type Lease struct {
	RunID string
	Epoch int64
}

// Wake is a request to execute a run at a certain time.
type Wake struct {
	RunID       string
	WorkspaceID string
	WorkflowID  string
	// Epoch is the epoch of the run when the wake-up was created.
	Epoch int64
	At    time.Time
	// Plan is the plan of the workspace. It limits how many runs are executed at a
	// time.
	Plan auth.Plan
	// Crashes counts the processes that died while executing the same steps.
	Crashes int
	// Level is the release that the run needs: only nodes that know it execute the run.
	Level int
	// Owned reports whether this node already holds the lease of the run, because
	// the run was just started here. The lease need not be acquired then.
	Owned bool
	// Fresh is the run itself if it was just started here and is small enough to
	// stay in memory until it is executed. It saves reading the run.
	Fresh *Snapshot
}

// After crashesToIsolate crashes at the same steps, a run is executed in isolation
// to find out whether it causes the crashes. After crashesToQuarantine it fails.
const (
	crashesToIsolate    = 2
	crashesToQuarantine = 5
)

// Isolated reports whether the run may only be executed while no other isolated
// run is.
func (w Wake) Isolated() bool { return w.Crashes >= crashesToIsolate }

// Quarantined reports whether the run must no longer be executed.
func (w Wake) Quarantined() bool { return w.Crashes >= crashesToQuarantine }

// Decision holds the changes of one move of a run. It is committed atomically.
type Decision struct {
	// Rev numbers the commits of the run.
	Rev int
	// Steps are the rows to write.
	Steps []Step
	// Unanswered are the paths of steps that settle because no answer arrived. If
	// one has arrived in the meantime, the commit fails with ErrAnswered.
	Unanswered []string
	// Attempts are the failed attempts that will be retried.
	Attempts []Attempt
	// Operations are the operations on tables and keys of steps in Steps. Each is
	// performed once, as long as its step has no answer; the result becomes the answer.
	Operations []Operation
	// Retried are the paths of steps whose operation failed and is tried again. Their
	// answers are removed. None of them has an operation in the same decision.
	Retried []string
	// Chunks are what checkpoints add to the states of steps. DroppedChunks are the
	// paths of steps whose earlier chunks are deleted.
	Chunks        []Chunk
	DroppedChunks []string
	// Logs are the new log lines.
	Logs []LogLine
	// Files are the files that the steps have created. Holds are the ids of other
	// files that they refer to: the run holds them from now on.
	Files []file.File
	Holds []string
	// Releases are the ids of files that checkpoints had and that the run does not need
	// any more.
	Releases []string
	// Executing are the paths of the steps that start after the commit.
	Executing []string
	// ExecutionTime is the total time for which steps have been executed.
	ExecutionTime time.Duration
	// LogBytes is the total size of the log lines, in bytes.
	LogBytes int
	// WaitingStep is the path of the step that the run now waits for; empty for
	// none.
	WaitingStep string
	// ClearCrashes resets the crash count: the run got past the steps it crashed at.
	ClearCrashes bool
	// Release releases the lease; the run wakes up at WakeAt.
	Release bool
	WakeAt  time.Time
	// Finish ends the run.
	Finish *Finish
}

// Chunk is what a checkpoint has added to the state of a step. It is stored sealed.
type Chunk struct {
	Path   string // of the step
	Number int    // from 0
	Data   []byte
}

// Operation is the operation of a step on a table or a key.
type Operation struct {
	Path string // of the step
	action.Operation
}

// Committed is the result of committing a decision.
type Committed struct {
	// Held reports whether the lease was valid. Otherwise nothing was changed.
	Held bool
	// Answers are the results of the operations, by step path.
	Answers map[string]StepAnswer
}

// Finish is the end of a run.
type Finish struct {
	Status Status
	Error  *Failure
	At     time.Time
	Event  event.Event
	// Output is the output of the run, for a parent run that waits for it.
	Output json.RawMessage
	// OutputFiles are the JSON pointers of the references to files inside Output.
	OutputFiles []string
	// CutShort reports whether steps were still open. They are cancelled, and so are
	// the runs that they wait for.
	CutShort bool
}

// ErrAnswered is returned for a decision that treats a step as unanswered although
// its answer has arrived.
var ErrAnswered = errors.New("an answer has arrived")

// Empty reports whether the decision changes nothing.
func (d Decision) Empty() bool {
	return len(d.Steps) == 0 && len(d.Operations) == 0 && len(d.Attempts) == 0 && len(d.Executing) == 0 && !d.Release && d.Finish == nil
}
