package run

import (
	"time"

	"github.com/stepmill/stepmill/internal/auth"
)

// Snapshot is the state of a run that the engine starts from.
type Snapshot struct {
	Detail
	WorkflowName string
	// Plan is the plan of the workspace, which limits what the run may do.
	Plan auth.Plan
	// ExecutionTime is the total time for which steps have been executed.
	ExecutionTime time.Duration
	// LogBytes is the total size of the log lines, in bytes.
	LogBytes int
	// Chunks are the chunks of the states of open steps, by path and number.
	Chunks []Chunk
}
