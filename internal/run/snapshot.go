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
	// Ran is the total time for which steps have been executed.
	Ran time.Duration
	// Logged is the total size of the log lines, in bytes.
	Logged int
	// Chunks are the chunks of the states of open steps, by path and number.
	Chunks []Chunk
}
