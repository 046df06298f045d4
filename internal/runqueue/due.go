package runqueue

import (
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// Due lists runs that no node owns and that are due, the earliest first, except those of
// the given workspaces.
func Due(c database.Conn, now time.Time, except []string, limit int) ([]run.Wake, error) {
	statement, args := selectWake+`WHERE run_queue.node IS NULL AND run_queue.wake_at <= $1`+NotDeleted, []any{now, limit}
	statement, args = database.NotIn(statement, "run_queue.workspace_id", except, args)
	return database.List(c, statement+` ORDER BY run_queue.wake_at LIMIT $2`, args, scanWake)
}

// NextDue returns the earliest time after the given one at which a run is due, or nil.
func NextDue(c database.Conn, after time.Time) (next *time.Time, err error) {
	err = c.Query(`SELECT min(wake_at) FROM run_queue WHERE node IS NULL AND wake_at > $1`, []any{after}, func(r database.Row) error { return r.Scan(&next) })
	return next, err
}

// DueSince returns when the first run that no node owns was due, or nil.
func DueSince(c database.Conn, now time.Time) (since *time.Time, err error) {
	err = c.Query(`SELECT wake_at FROM run_queue WHERE node IS NULL AND wake_at <= $1`+NotDeleted+` ORDER BY wake_at LIMIT 1`,
		[]any{now}, func(r database.Row) error { return r.Scan(&since) })
	return since, err
}

// Orphans lists runs that other nodes than the given one own, ordered by id.
func Orphans(c database.Conn, node, after string, limit int) ([]run.Wake, error) {
	return database.List(c, selectWake+`WHERE run_queue.node IS NOT NULL AND run_queue.node <> $1 AND run_queue.run_id > $2`+NotDeleted+`
		ORDER BY run_queue.run_id LIMIT $3`, []any{node, after, limit}, scanWake)
}

// CountByNode counts the runs of a workspace by the nodes that own them.
func CountByNode(c database.Conn, workspaceID string) (map[string]int, error) {
	runs := map[string]int{}
	err := c.Query(`SELECT node, count(*) FROM run_queue WHERE workspace_id = $1`+ownedByNode+UseIndex("workspace_id")+NotDeleted+` GROUP BY node`,
		[]any{workspaceID}, func(r database.Row) error {
			var node string
			var n int
			err := r.Scan(&node, &n)
			runs[node] = n
			return err
		})
	return runs, err
}

// Count counts the unfinished runs of a workspace, except those of deleted workflows.
func Count(c database.Conn, workspaceID string) (int, error) {
	return database.Number(c, `SELECT count(*) FROM run_queue q JOIN workflows w ON w.id = q.workflow_id
		WHERE w.workspace_id = $1 AND w.deleted_at IS NULL`+UseIndex("q.workflow_id"), workspaceID)
}
