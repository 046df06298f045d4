package runqueue

import (
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// NotDeleted voids every lease on the runs of a deleted workflow at once.
const NotDeleted = ` AND NOT EXISTS (SELECT 1 FROM workflows w WHERE w.id = run_queue.workflow_id AND w.deleted_at IS NOT NULL)`

// UseIndex returns a condition that holds for every queued run, on its
// workspace_id or workflow_id. It makes PostgreSQL consider the partial index on
// that column. Without it, while the statistics say that the queue is empty, the
// planner treats such an index as no worse than the primary key, and dead rows
// stay in the index for a while.
func UseIndex(column string) string { return ` AND ` + column + ` <> ''` }

const (
	wakeFields  = `run_queue.run_id, run_queue.workspace_id, run_queue.workflow_id, run_queue.epoch, run_queue.wake_at, run_queue.crashes, run_queue.level, s.plan`
	wakeColumns = wakeFields + ` FROM run_queue JOIN workspaces s ON s.id = run_queue.workspace_id`
	// selectWake selects wake-ups, for scanWake.
	selectWake = `SELECT ` + wakeColumns + ` `
)

func scanWake(r database.Row) (w run.Wake, err error) {
	err = r.Scan(&w.RunID, &w.WorkspaceID, &w.WorkflowID, &w.Epoch, &w.At, &w.Crashes, &w.Level, (*string)(&w.Plan))
	return w, err
}
