package run

// Snapshot is a run as the engine takes it up.
type Snapshot struct {
	Detail
	WorkflowName string
}
