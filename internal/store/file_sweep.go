package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/database"
)

// SweepFiles implements file.SweepStore.
func (s Files) SweepFiles(ctx context.Context, now time.Time, limit int) (int, error) {
	return transact(ctx, s.db, func(tx *transaction) (removed int, err error) {
		type expired struct{ id, workspace string }
		old, err := database.List(tx, `SELECT id, workspace_id FROM files WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`, []any{now, limit}, func(r database.Row) (e expired, err error) {
			err = r.Scan(&e.id, &e.workspace)
			return e, err
		})
		if err != nil || len(old) == 0 {
			return removed, err
		}
		workspaceID := old[0].workspace
		if _, err := lockFiles(tx, workspaceID); err != nil {
			return removed, err
		}
		var ids []string
		for _, e := range old {
			if e.workspace == workspaceID {
				ids = append(ids, e.id)
			}
		}
		removed = len(ids)
		return removed, removeFiles(tx, workspaceID, ids, now)
	})
}

// removeFiles removes those of the files that have expired, with blobs that no file
// needs any more. The files of the workspace are locked.
func removeFiles(tx *transaction, workspaceID string, ids []string, now time.Time) error {
	var files, bytes int64
	for _, id := range ids {
		// The condition fails if something has referred to the file since it was read.
		blobID, err := database.One(tx, `DELETE FROM files WHERE id = $1 AND workspace_id = $2 AND expires_at <= $3 RETURNING blob_id`, []any{id, workspaceID, now}, scanText)
		if err != nil {
			return err
		}
		if blobID == nil {
			continue
		}
		freed, err := releaseBlob(tx, *blobID)
		if err != nil {
			return err
		}
		files, bytes = files+1, bytes+freed
	}
	if files == 0 {
		return nil
	}
	return addFiles(tx, workspaceID, -files, -bytes)
}

// releaseBlob removes a file from those that share a blob. It returns how many bytes
// that frees.
func releaseBlob(tx *transaction, id string) (freed int64, err error) {
	left := -1
	err = tx.Query(`UPDATE file_blobs SET files = files - 1 WHERE id = $1 RETURNING files, size`, []any{id}, func(r database.Row) error { return r.Scan(&left, &freed) })
	if err != nil || left != 0 {
		return 0, err
	}
	if err := tx.Do(`DELETE FROM file_blobs WHERE id = $1`, id); err != nil {
		return 0, err
	}
	return freed, abandonBlob(tx, blob.ID(id))
}

// abandonBlob notes that the bytes of a blob can be deleted after the commit.
func abandonBlob(tx *transaction, id blob.ID) error {
	return tx.Do(`INSERT INTO purged_blobs (id) VALUES ($1) ON CONFLICT DO NOTHING`, string(id))
}

func scanBlobID(r database.Row) (id blob.ID, err error) {
	err = r.Scan((*string)(&id))
	return id, err
}

// AbandonedBlobs implements file.SweepStore.
func (s Files) AbandonedBlobs(ctx context.Context, limit int) ([]blob.ID, error) {
	return readList(ctx, s.db, `SELECT id FROM purged_blobs ORDER BY id LIMIT $1`, []any{limit}, scanBlobID)
}

// ForgetBlobs implements file.SweepStore.
func (s Files) ForgetBlobs(ctx context.Context, ids []blob.ID) error {
	return s.db.write(ctx, func(tx *transaction) error {
		for _, id := range ids {
			if err := tx.Do(`DELETE FROM purged_blobs WHERE id = $1`, string(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

// KnownBlobs implements file.SweepStore.
func (s Files) KnownBlobs(ctx context.Context, first, last blob.ID) ([]blob.ID, error) {
	return readList(ctx, s.db, `SELECT id FROM file_blobs WHERE id >= $1 AND id <= $2 UNION ALL SELECT blob_id FROM upload_parts WHERE blob_id >= $1 AND blob_id <= $2`,
		[]any{string(first), string(last)}, scanBlobID)
}
