package run

import (
	"time"

	"github.com/stepmill/stepmill/internal/auth"
)

// Snapshot is a run as the engine takes it up.
type Snapshot struct {
	Detail
	WorkflowName string
	// Plan is that of the run's workspace: it bounds what the run may do.
	Plan auth.Plan
	// Ran is how long its steps have been executed so far.
	Ran time.Duration
	// Logged is the size of what they have written to their logs.
	Logged int
}
