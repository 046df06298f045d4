package event

// RunData is the data of an event about a run. The members that are nil are absent.
type RunData struct {
	RunID        string     `json:"run_id"`
	WorkflowID   string     `json:"workflow_id"`
	WorkflowName string     `json:"workflow_name"`
	Status       string     `json:"status"`
	Trigger      RunTrigger `json:"trigger"`
	Draft        bool       `json:"draft,omitempty"`
	StartedAt    string     `json:"started_at"`
	FinishedAt   *string    `json:"finished_at,omitempty"`
	DurationMS   *int64     `json:"duration_ms,omitempty"`
	Error        *string    `json:"error,omitempty"`
	FailedStepID *string    `json:"failed_step_id,omitempty"`
}

// RunTrigger is what started a run.
type RunTrigger struct {
	Type string  `json:"type"`
	ID   *string `json:"id"`
}

// WorkflowData is the data of an event about the state of a workflow.
type WorkflowData struct {
	WorkflowID    string `json:"workflow_id"`
	WorkflowName  string `json:"workflow_name"`
	State         string `json:"state"`
	PreviousState string `json:"previous_state"`
	Version       int    `json:"version"`
}

// Connection is what the data of all events about a connection has.
type Connection struct {
	ID          string  `json:"connection_id"`
	Name        string  `json:"name"`
	Integration *string `json:"integration"`
}

// ConnectionBrokenData is the data of [ConnectionBroken].
type ConnectionBrokenData struct {
	Connection

	Problem string `json:"problem"`
}

// ConnectionEndingData is the data of [ConnectionEnding].
type ConnectionEndingData struct {
	Connection

	ConsentEndsAt string `json:"consent_ends_at"`
}
