package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/trigger"
)

var hookRequestsTable = Table{
	Name: "hook_requests", Key: "workflow_id trigger_id id", Int: "at size", Bool: "verified",
	Text: "workflow_id trigger_id id workspace_id method outcome reason run_id headers query payload files",
}

// RotateToken implements trigger.Store.
func (s Triggers) RotateToken(ctx context.Context, t trigger.Trigger, hash []byte, entry audit.Entry) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (bool, error) {
		rotated, err := oneRow(tx.Exec(`UPDATE triggers SET token = $1, token_hash = $2 WHERE workflow_id = $3 AND trigger_id = $4 AND workspace_id = $5 AND token IS NOT NULL`,
			t.SealedToken, hash, t.WorkflowID, t.ID, t.WorkspaceID))
		if err != nil || !rotated {
			return false, err
		}
		return true, insertAudit(tx, entry)
	})
}

// SaveRequests implements trigger.InboxStore. It looks the trigger up again,
// because it may have been deleted since the calls arrived.
func (s Triggers) SaveRequests(ctx context.Context, t trigger.Trigger, requests []trigger.Request, atMost int) error {
	return s.db.write(ctx, func(tx *transaction) error {
		exists, err := database.Number(tx, `SELECT count(*) FROM triggers WHERE workflow_id = $1 AND trigger_id = $2 AND workspace_id = $3`, t.WorkflowID, t.ID, t.WorkspaceID)
		if err != nil || exists == 0 {
			return err
		}
		return saveRequests(tx, t, requests, atMost)
	})
}

// saveRequests stores calls of a trigger and deletes older ones. Those that were verified
// and those that were not are counted separately: people without the secret of the trigger
// must not be able to replace the calls of those who have it.
func saveRequests(tx *transaction, t trigger.Trigger, requests []trigger.Request, atMost int) error {
	for _, r := range requests {
		if err := tx.Do(`INSERT INTO hook_requests (workflow_id, trigger_id, id, workspace_id, at, method, size, outcome, reason, verified, run_id, headers, query, payload)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT (workflow_id, trigger_id, id) DO NOTHING`,
			t.WorkflowID, t.ID, r.ID, t.WorkspaceID, r.At, r.Method, r.Size, r.Outcome, database.OrNil(r.Reason), r.Verified, database.OrNil(r.RunID),
			string(r.Headers), string(r.Query), database.OrNil(string(r.Payload))); err != nil {
			return err
		}
		if err := holdRequestFiles(tx, t, r); err != nil {
			return err
		}
	}
	for _, verified := range []bool{true, false} {
		if _, err := deleteRequests(tx, `WHERE workflow_id = $1 AND trigger_id = $2 AND verified = $3 AND id <
			(SELECT min(id) FROM (SELECT id FROM hook_requests WHERE workflow_id = $1 AND trigger_id = $2 AND verified = $3 ORDER BY id DESC LIMIT $4) AS newest)`,
			t.WorkflowID, t.ID, verified, atMost); err != nil {
			return err
		}
	}
	return nil
}

// holdRequestFiles makes a recorded call hold the files that it brought. Those of a call
// that was buffered for too long may be gone.
func holdRequestFiles(tx *transaction, t trigger.Trigger, r trigger.Request) error {
	if len(r.Files) == 0 {
		return nil
	}
	pointers, err := pointersOrNil(r.Files)
	if err != nil {
		return err
	}
	ids, err := run.FileIDs(r.Payload, r.Files)
	if err != nil {
		return err
	}
	err = holdFiles(tx, t.WorkspaceID, file.HeldByRequest(t.WorkflowID, t.ID, r.ID), ids, clock.Now())
	if fault.Is(err, fault.FileNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return tx.Do(`UPDATE hook_requests SET files = $1 WHERE workflow_id = $2 AND trigger_id = $3 AND id = $4`, pointers, t.WorkflowID, t.ID, r.ID)
}

// deleteRequests deletes recorded calls, with their references to files. It returns how
// many.
func deleteRequests(tx *transaction, where string, args ...any) (int64, error) {
	var (
		deleted int64
		holders []file.Holder
	)
	err := tx.Query(`DELETE FROM hook_requests `+where+` RETURNING workflow_id, trigger_id, id, files`, args, func(r database.Row) error {
		var (
			workflowID, triggerID, id string
			files                     []byte
		)
		deleted++
		err := r.Scan(&workflowID, &triggerID, &id, &files)
		if files != nil {
			holders = append(holders, file.HeldByRequest(workflowID, triggerID, id))
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, holder := range holders {
		if err := dropHolder(tx, holder, clock.Now()); err != nil {
			return 0, err
		}
	}
	return deleted, nil
}

// Requests implements trigger.InboxStore.
func (s Triggers) Requests(ctx context.Context, workspaceID, workflowID, id string, since time.Time, page paging.Request) (paging.Page[trigger.Request], error) {
	found, err := readList(ctx, s.db, `SELECT id, at, method, size, outcome, reason, verified, run_id, headers, query, payload, files FROM hook_requests
		WHERE workflow_id = $1 AND trigger_id = $2 AND workspace_id = $3 AND id < $4 AND at >= $5 ORDER BY id DESC LIMIT $6`,
		[]any{workflowID, id, workspaceID, before(page.After), since, page.Limit + 1}, func(r database.Row) (q trigger.Request, err error) {
			var files filePointers
			if err = r.Scan(&q.ID, &q.At, &q.Method, &q.Size, &q.Outcome, &q.Reason, &q.Verified, &q.RunID, (*[]byte)(&q.Headers), (*[]byte)(&q.Query), (*[]byte)(&q.Payload), (*[]byte)(&files)); err == nil {
				err = files.decode(&q.Files)
			}
			return q, err
		})
	return paging.Cut(found, page.Limit, func(r trigger.Request) string { return r.ID }), err
}

// PurgeRequests deletes up to limit calls that are past their retention. It
// returns true if there may be more.
func (s Triggers) PurgeRequests(ctx context.Context, since time.Time, limit int) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (more bool, err error) {
		n, err := deleteRequests(tx, `WHERE (workflow_id, trigger_id, id) IN
			(SELECT workflow_id, trigger_id, id FROM hook_requests WHERE at < $1 LIMIT $2)`, since, limit)
		more = n == int64(limit)
		return more, err
	})
}
