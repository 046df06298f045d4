package runqueue

import (
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// Lock blocks other transactions on a run until this one ends. It returns false if the
// run is no longer running.
func Lock(c database.Conn, runID string) (bool, error) {
	n, err := c.Exec(`UPDATE run_queue SET epoch = epoch WHERE run_id = $1`, runID)
	return n == 1, err
}

// LockIn is Lock for a run of a workspace. It also returns false if the workflow was
// deleted.
func LockIn(c database.Conn, workspaceID, runID string) (bool, error) {
	n, err := c.Exec(`UPDATE run_queue SET epoch = epoch WHERE run_id = $1 AND workspace_id = $2`+NotDeleted, runID, workspaceID)
	return n == 1, err
}

// IsRunning reports whether a run of a workspace is unfinished and its workflow not
// deleted.
func IsRunning(c database.Conn, workspaceID, runID string) (bool, error) {
	n, err := database.Number(c, `SELECT count(*) FROM run_queue WHERE run_id = $1 AND workspace_id = $2`+NotDeleted, runID, workspaceID)
	return n == 1, err
}

// SetWakeAt sets when a run that no node owns is due.
func SetWakeAt(c database.Conn, runID string, at time.Time) error {
	return c.Do(`UPDATE run_queue SET wake_at = $1 WHERE run_id = $2`, at, runID)
}

// NoteAnswer makes a run due at a steady time, because an answer has arrived for it. It
// reports whether a node owns the run, which then has to look for the answer.
func NoteAnswer(c database.Conn, runID string, at time.Time) (owned bool, err error) {
	if err := c.Do(`UPDATE run_queue SET wake_at = $1 WHERE run_id = $2 AND admitted`, at, runID); err != nil {
		return false, err
	}
	n, err := database.Number(c, `SELECT count(*) FROM run_queue WHERE run_id = $1`+ownedByNode, runID)
	return n == 1, err
}

// CountCrash counts a crash against every run whose steps another process than the node
// was executing: one of them may have caused it.
func CountCrash(c database.Conn, node string) error { return c.Do(countCrash, node) }

const countCrash = `UPDATE run_queue SET crashes = CASE WHEN suspects = executing THEN crashes + 1 ELSE 1 END, suspects = executing, executing = NULL
	WHERE node IS NOT NULL AND node <> $1 AND executing IS NOT NULL`

// ClearCrashes forgets the crashes of a run whose suspects have ended.
func ClearCrashes(c database.Conn, runID string) error {
	return c.Do(`UPDATE run_queue SET crashes = 0, suspects = NULL WHERE run_id = $1`, runID)
}

// ReleaseImported takes a run from the node that owned it in the exporting installation.
// As after a restart, steps in flight count as a crash and any node may claim the run. The
// new epoch keeps the previous owner from writing.
func ReleaseImported(c database.Conn, runID any, now time.Time) error {
	if err := c.Do(`UPDATE run_queue SET epoch = epoch + 1 WHERE run_id = $1`, runID); err != nil {
		return err
	}
	if err := c.Do(countCrash+` AND run_id = $2`, "", runID); err != nil {
		return err
	}
	return c.Do(`UPDATE run_queue SET node = NULL, wake_at = $1 + COALESCE((SELECT max(correction) FROM service_clock), 0) WHERE run_id = $2`+ownedByNode, now, runID)
}

// ReadTotals returns the query for what a run has used so far and the plan that limits it.
func ReadTotals(runID string, into *run.Snapshot) database.Query {
	return database.Query{
		Statement: `SELECT w.plan, q.execution_time, q.log_bytes FROM run_queue q JOIN workspaces w ON w.id = q.workspace_id WHERE q.run_id = $1`,
		Args:      []any{runID},
		Each: func(r database.Row) error {
			return r.Scan((*string)(&into.Plan), (*int64)(&into.ExecutionTime), &into.LogBytes)
		},
	}
}
