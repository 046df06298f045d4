package storetest

// Unfinished runs as the first release left them, waiting and not waiting. They
// are written with plain SQL, because the store writes rows of the current
// schema.
const (
	OldRuns = `INSERT INTO run_queue (run_id, workspace_id, workflow_id, epoch) VALUES
		('run_ask', 'ws', 'wf', 1), ('run_busy', 'ws', 'wf', 1), ('run_new', 'ws', 'wf', 1), ('run_rest', 'ws', 'wf', 1)`
	OldSteps = `INSERT INTO steps (run_id, path, seq, name, type, status, attempt, started_at, attempt_at, wake_at) VALUES
		('run_ask', 'late', 1, 'n', 'flow.wait', 'waiting', 1, 0, 0, 20),
		('run_ask', 'lines', 2, 'n', 'foreach', 'running', 1, 0, 0, NULL),
		('run_ask', 'lines[0].soon', 3, 'n', 'flow.approval', 'waiting', 1, 0, 0, 10),
		('run_ask', 'child', 4, 'n', 'flow.run', 'waiting', 1, 0, 0, NULL),
		('run_busy', 'ask', 1, 'n', 'flow.approval', 'waiting', 1, 0, 0, 10),
		('run_busy', 'call', 2, 'n', 'http.request', 'running', 1, 0, 0, NULL),
		('run_rest', 'poll', 1, 'n', 'repeat', 'waiting', 1, 0, 0, 10)`
	// UpgradedRuns reads the result of the upgrade.
	UpgradedRuns = `SELECT run_id || ' ' || COALESCE(waiting_step, '-') FROM run_queue ORDER BY run_id`
)

// WantUpgradedRuns returns the expected result of UpgradedRuns.
func WantUpgradedRuns() []string {
	return []string{"run_ask lines[0].soon", "run_busy -", "run_new -", "run_rest poll"}
}
