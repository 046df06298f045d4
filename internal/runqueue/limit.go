package runqueue

import (
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
)

// The functions below are about the runs of a workflow with the same concurrency key.
// Callers hold its lock. Conditions on admitted are written as comparisons with a
// parameter, so that the index applies on SQLite too.

// CountByKey counts the runs that are admitted, or those that are queued.
func CountByKey(c database.Conn, workflowID, key string, admitted bool) (int, error) {
	return database.Number(c, `SELECT count(*) FROM run_queue WHERE workflow_id = $1 AND concurrency_key = $2 AND admitted = $3`, workflowID, key, admitted)
}

// OldestAdmitted returns the ids of the oldest admitted runs.
func OldestAdmitted(c database.Conn, workflowID, key string, count int) ([]string, error) {
	return database.List(c, `SELECT run_id FROM run_queue WHERE workflow_id = $1 AND concurrency_key = $2 AND admitted = $3 ORDER BY run_id LIMIT $4`,
		[]any{workflowID, key, true, count}, scanText)
}

// Queued is a run that waits until fewer runs than its limit are admitted.
type Queued struct {
	RunID string
	Limit int
}

// NextQueued returns the run that has been queued longest, or nil.
func NextQueued(c database.Conn, workflowID, key string) (*Queued, error) {
	return database.One(c, `SELECT run_id, concurrency_limit FROM run_queue
		WHERE workflow_id = $1 AND concurrency_key = $2 AND admitted = $3`+NotDeleted+` ORDER BY run_id LIMIT 1`,
		[]any{workflowID, key, false}, func(r database.Row) (q Queued, err error) {
			err = r.Scan(&q.RunID, &q.Limit)
			return q, err
		})
}

// Admit makes a queued run due.
func Admit(c database.Conn, runID string, at time.Time) error {
	return c.Do(`UPDATE run_queue SET admitted = $1, wake_at = $2 WHERE run_id = $3`, true, clock.Past(at), runID)
}
