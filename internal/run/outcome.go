package run

import "encoding/json"

// Deleted is the status that a waiting step sees if the run was deleted with its
// workflow.
const Deleted Status = "deleted"

// Outcome is the result of a run for the step that started it.
type Outcome struct {
	RunID  string          `json:"run_id"`
	Status Status          `json:"status"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// NewOutcome returns the outcome of a finished run.
func NewOutcome(runID string, f Finish) Outcome {
	out := Outcome{RunID: runID, Status: f.Status, Output: f.Output}
	if f.Error != nil {
		out.Error = f.Error.Message
	}
	return out
}
