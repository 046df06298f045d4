package run

// Job is a run to enqueue for any node.
type Job struct {
	Wake
	// InFlight counts the runs in flight of the workspace. Workspaces with few of them
	// come first.
	InFlight int
}

// OwnedRun is a run that a node owns.
type OwnedRun struct {
	Wake
	// AnswerArrived reports whether an answer has arrived for one of its steps.
	AnswerArrived bool
	// LocalTimer reports whether the run is not executed but has a timer on the node.
	LocalTimer bool
}

// Claimed is the outcome of claiming a run.
type Claimed int

const (
	// ClaimStale means that the wake-up is outdated and there is nothing to do.
	ClaimStale Claimed = iota
	// ClaimOwned means that this node now owns the run.
	ClaimOwned
	// ClaimLocalTimer means that the run is not due yet and this node has a timer for
	// it.
	ClaimLocalTimer
	// ClaimThrottled means that the concurrency limit of the workspace is reached.
	ClaimThrottled
)
