package run

import "encoding/json"

// Deleted is what a run is to those who wait for it once its workflow was
// deleted.
const Deleted Status = "deleted"

// Outcome is what the step that started a run learns of its end.
type Outcome struct {
	RunID  string          `json:"run_id"`
	Status Status          `json:"status"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// NewOutcome is the outcome of a run that ended like that.
func NewOutcome(runID string, f Finish) Outcome {
	out := Outcome{RunID: runID, Status: f.Status, Output: f.Output}
	if f.Error != nil {
		out.Error = f.Error.Message
	}
	return out
}
