package run

// Handover is a run on its way to a node.
type Handover struct {
	Wake
	// Under is how many runs of its workspace are under way: those of a workspace
	// with few come first.
	Under int
}

// Held is a run that a node has in its hands.
type Held struct {
	Wake
	// News says that something has come for it.
	News bool
	// Armed says that it is not executed: the node watches the time it waits for.
	Armed bool
}

// Claimed is what came of taking up a run.
type Claimed int

const (
	// ClaimStale says that the wake-up is of an earlier time, there is nothing to do.
	ClaimStale Claimed = iota
	// ClaimOwned says that the run is in the hands of this node.
	ClaimOwned
	// ClaimArmed says that its time has not come; this node watches it.
	ClaimArmed
	// ClaimParked says that its workspace has as many under way as it may.
	ClaimParked
)
