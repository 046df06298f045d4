package runqueue

import (
	"strings"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

// fence returns the statement that checks a lease. Release is what it sets when a run
// is released, condition what must hold besides the epoch.
func fence(lease run.Lease, d run.Decision, release, condition string) database.Statement {
	switch {
	case d.Finish != nil:
		return database.Statement{Text: `DELETE FROM run_queue WHERE run_id = $1 AND epoch = $2` + condition, Args: []any{lease.RunID, lease.Epoch}}
	case d.Release:
		return database.Statement{Text: `UPDATE run_queue SET ` + release + `node = NULL, wake_at = CASE WHEN wake_at < $1 THEN wake_at ELSE $1 END, executing = NULL, execution_time = $2, log_bytes = $3, waiting_step = $4
			WHERE run_id = $5 AND epoch = $6` + condition, Args: []any{d.WakeAt, int64(d.ExecutionTime), d.LogBytes, database.OrNil(d.WaitingStep), lease.RunID, lease.Epoch}}
	default:
		return database.Statement{Text: `UPDATE run_queue SET executing = $1, execution_time = $2, log_bytes = $3, waiting_step = $4 WHERE run_id = $5 AND epoch = $6` + condition,
			Args: []any{database.OrNil(strings.Join(d.Executing, "\n")), int64(d.ExecutionTime), d.LogBytes, database.OrNil(d.WaitingStep), lease.RunID, lease.Epoch}}
	}
}

// activate makes a node the owner of a run. A node that became the owner but lost the
// response may call it again.
func activate(tx Tx, wake run.Wake, node, condition string) (bool, error) {
	n, err := tx.Exec(`UPDATE run_queue SET epoch = $1, node = $2, wake_at = NULL
		WHERE run_id = $3 AND admitted AND (epoch = $4 OR epoch = $1 AND node = $2)`+condition, wake.Epoch+1, node, wake.RunID, wake.Epoch)
	return n == 1, err
}
