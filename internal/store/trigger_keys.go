package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/run"
)

var triggerKeysTable = Table{Name: "trigger_keys", Key: "workflow_id trigger_id hash", Text: "workflow_id trigger_id run_id", Int: "expires_at", Bytes: "hash"}

// claimTriggerKey records the idempotency key of a call, or returns the run that
// used it before.
func claimTriggerKey(tx *transaction, r run.Run, f run.Fire) error {
	n, err := tx.Exec(`INSERT INTO trigger_keys (workflow_id, trigger_id, hash, run_id, expires_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (workflow_id, trigger_id, hash) DO UPDATE SET run_id = excluded.run_id, expires_at = excluded.expires_at
		WHERE trigger_keys.expires_at <= $6`, r.WorkflowID, r.Trigger.ID, f.Dedupe.Hash, r.ID, f.Dedupe.Until, f.At)
	if err != nil || n == 1 {
		return err
	}
	first, err := database.One(tx, `SELECT run_id FROM trigger_keys WHERE workflow_id = $1 AND trigger_id = $2 AND hash = $3`,
		[]any{r.WorkflowID, r.Trigger.ID, f.Dedupe.Hash}, scanText)
	if err != nil || first == nil {
		return err
	}
	return &run.DuplicateError{RunID: *first}
}

// PurgeTriggerKeys deletes up to limit expired keys of trigger calls. It returns
// true if there may be more.
func (s Triggers) PurgeTriggerKeys(ctx context.Context, now time.Time, limit int) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) {
		n, err := tx.Exec(`DELETE FROM trigger_keys WHERE (workflow_id, trigger_id, hash) IN
			(SELECT workflow_id, trigger_id, hash FROM trigger_keys WHERE expires_at <= $1 LIMIT $2)`, now, limit)
		return n == int64(limit), err
	})
}
