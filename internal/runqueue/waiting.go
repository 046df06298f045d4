package runqueue

import (
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// Only unfinished runs have steps that wait, so these are found through the queue.

// Approvals lists the steps of a workspace that wait for an answer, from the newest run
// on. It starts after a step of a run, where "~" is after every run.
func Approvals(c database.Conn, workspaceID, runID, path string, limit int) ([]run.Approval, error) {
	return database.List(c, `SELECT s.run_id, s.path, q.workflow_id, w.name, s.name, s.input, s.started_at, COALESCE(s.deadline, s.wake_at)
		FROM run_queue q JOIN steps s ON s.run_id = q.run_id JOIN workflows w ON w.id = q.workflow_id AND w.deleted_at IS NULL
		WHERE q.workspace_id = $1`+UseIndex("q.workspace_id")+` AND q.run_id <= $2 AND (q.run_id < $2 OR s.path > $3)
		AND s.awaits = 'answer' AND s.status = 'waiting' AND s.answer IS NULL ORDER BY q.run_id DESC, s.path LIMIT $4`,
		[]any{workspaceID, runID, path, limit}, func(r database.Row) (a run.Approval, err error) {
			err = r.Scan(&a.RunID, &a.StepID, &a.WorkflowID, &a.WorkflowName, &a.StepName, (*[]byte)(&a.Input), &a.Since, &a.Until)
			a.Until = clock.WallPtr(a.Until)
			return a, err
		})
}

// Awaiting lists runs of a workspace with a step that awaits one of the given things and
// wakes after a time.
func Awaiting(c database.Conn, workspaceID string, awaits []any, after time.Time, limit int) ([]string, error) {
	return database.List(c, `SELECT DISTINCT q.run_id FROM run_queue q JOIN steps s ON s.run_id = q.run_id
		WHERE q.workspace_id = $1`+UseIndex("q.workspace_id")+` AND s.status = 'waiting' AND s.awaits IN (`+database.Placeholders(4, len(awaits))+`) AND s.wake_at > $2
		ORDER BY q.run_id LIMIT $3`, append([]any{workspaceID, after, limit}, awaits...), scanText)
}

// CountAwaiting counts the runs of a workspace with a step that awaits one of the given
// things, by what they await.
func CountAwaiting(c database.Conn, workspaceID string, awaits []any) (map[string]int, error) {
	runs := map[string]int{}
	err := c.Query(`SELECT s.awaits, count(DISTINCT q.run_id) FROM run_queue q JOIN steps s ON s.run_id = q.run_id
		WHERE q.workspace_id = $1`+UseIndex("q.workspace_id")+` AND s.status = 'waiting' AND s.awaits IN (`+database.Placeholders(2, len(awaits))+`) GROUP BY s.awaits`,
		append([]any{workspaceID}, awaits...), func(r database.Row) error {
			var awaits string
			var n int
			err := r.Scan(&awaits, &n)
			runs[awaits] = n
			return err
		})
	return runs, err
}

// WithShiftedWait lists runs with a step that waits for a time of day and wakes at another
// one, by the correction of the clock, give or take a tolerance. Both are microseconds.
func WithShiftedWait(c database.Conn, awaitsTime string, correction, tolerance int64, limit int) ([]string, error) {
	return database.List(c, `SELECT DISTINCT q.run_id FROM run_queue q JOIN steps s ON s.run_id = q.run_id
		WHERE s.status = 'waiting' AND s.awaits = $1 AND (s.wake_at > s.deadline + $2 OR s.wake_at < s.deadline + $3) ORDER BY q.run_id LIMIT $4`,
		[]any{awaitsTime, correction + tolerance, correction - tolerance, limit}, scanText)
}

// AwaitedBySteps lists the unfinished runs of a workflow for which steps of other runs wait.
func AwaitedBySteps(c database.Conn, workflowID string) ([]run.Run, error) {
	return database.List(c, `SELECT r.id, r.parent_run, r.parent_step FROM run_queue q JOIN runs r ON r.id = q.run_id
		WHERE q.workflow_id = $1`+UseIndex("q.workflow_id")+` AND r.parent_run IS NOT NULL AND r.parent_waits`, []any{workflowID},
		func(row database.Row) (r run.Run, err error) {
			r.Parent = &run.Parent{}
			err = row.Scan(&r.ID, &r.Parent.RunID, &r.Parent.StepID)
			return r, err
		})
}

// AwaitedChildren lists the unfinished runs for which steps of the workflow's runs wait.
func AwaitedChildren(c database.Conn, workflowID string) ([]string, error) {
	return database.List(c, `SELECT r.id FROM run_queue q JOIN runs r ON r.parent_run = q.run_id
		WHERE q.workflow_id = $1 AND r.parent_waits AND r.status = 'running'`, []any{workflowID}, scanText)
}

// ReadState returns the query for the state of a run in the queue.
func ReadState(q Queue, runID string, into *run.Detail) database.Query {
	return database.Query{
		Statement: `SELECT NOT q.admitted, q.crashes, ` + q.WaitsForNode() + ` FROM run_queue q WHERE q.run_id = $1`, Args: []any{runID},
		Each: func(r database.Row) error { return r.Scan(&into.HeldBack, &into.Crashes, &into.Queued) },
	}
}

// ReadWait returns the query for the state of a run in the queue with the step that it
// waits for.
func ReadWait(q Queue, runID string, into *run.WaitFacts) database.Query {
	return database.Query{
		Statement: `SELECT NOT q.admitted, q.crashes, q.concurrency_key, ` + q.WaitsForNode() + `, s.path, s.reason, s.deadline, s.wake_at, s.awaits, s.error_code
			FROM run_queue q LEFT JOIN steps s ON s.run_id = q.run_id AND s.path = q.waiting_step AND s.status = 'waiting' WHERE q.run_id = $1`,
		Args: []any{runID},
		Each: func(r database.Row) error {
			var (
				step    run.Step
				failure run.Failure
			)
			err := r.Scan(&into.HeldBack, &into.Crashes, &into.ConcurrencyKey, &into.Queued, &step.Path, &step.Reason, &step.Deadline, &step.WakeAt,
				(*string)(&step.Awaits), &failure.Code)
			if failure.Code != "" {
				step.Error = &failure
			}
			if step.Path != "" {
				into.Step = &step
			}
			return err
		},
	}
}
