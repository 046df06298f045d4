package store

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/file"
)

var uploadRows = mapTable("uploads", "id", func(u *file.Upload) []any {
	return []any{
		"id", &u.ID, "workspace_id", &u.WorkspaceID, "name", &u.Name, "type", &u.Type, "metadata", &u.Metadata, "size", &u.Size, "received", &u.Received,
		"created_at", &u.CreatedAt, "expires_at", &u.ExpiresAt,
	}
})

// InsertUpload implements file.UploadStore.
func (s Files) InsertUpload(ctx context.Context, u file.Upload, check func(have file.Usage, uploads int) error) error {
	return s.db.write(ctx, func(tx *transaction) error {
		have, err := lockFiles(tx, u.WorkspaceID)
		if err != nil {
			return err
		}
		uploads, err := database.Number(tx, `SELECT count(*) FROM uploads WHERE workspace_id = $1`, u.WorkspaceID)
		if err != nil {
			return err
		}
		if err := check(have, uploads); err != nil {
			return err
		}
		if err := uploadRows.insertInto(tx, u); err != nil {
			return err
		}
		return addUploading(tx, u.WorkspaceID, u.Size)
	})
}

func addUploading(tx *transaction, workspaceID string, bytes int64) error {
	return tx.Do(`UPDATE file_usage SET uploading = uploading + $2 WHERE owner = $1`, workspaceID, bytes)
}

// Upload implements file.UploadStore.
func (s Files) Upload(ctx context.Context, workspaceID, id string, now time.Time) (*file.Upload, error) {
	return readOne(ctx, s.db, uploadRows.selects()+`WHERE id = $1 AND workspace_id = $2 AND expires_at > $3`, []any{id, workspaceID, now}, uploadRows.scan)
}

// AddPart implements file.UploadStore.
func (s Files) AddPart(ctx context.Context, workspaceID, id string, p file.Part, now time.Time) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (added bool, err error) {
		n, err := tx.Exec(`UPDATE uploads SET received = received + $3 WHERE id = $1 AND workspace_id = $2 AND received = $4 AND received + $3 <= size AND expires_at > $5`,
			id, workspaceID, p.Size, p.Start, now)
		if added = n == 1; err != nil {
			return added, err
		}
		if !added {
			return added, abandonBlob(tx, p.Blob)
		}
		return added, tx.Do(`INSERT INTO upload_parts (upload_id, start, blob_id, size) VALUES ($1, $2, $3, $4)`, id, p.Start, string(p.Blob), p.Size)
	})
}

// Parts implements file.UploadStore.
func (s Files) Parts(ctx context.Context, id string) ([]file.Part, error) {
	return view(ctx, s.db, func(c database.Conn) ([]file.Part, error) { return partsOf(c, id) })
}

func partsOf(c database.Conn, id string) ([]file.Part, error) {
	return database.List(c, `SELECT start, blob_id, size FROM upload_parts WHERE upload_id = $1 ORDER BY start`, []any{id}, func(r database.Row) (p file.Part, err error) {
		err = r.Scan(&p.Start, (*string)(&p.Blob), &p.Size)
		return p, err
	})
}

// CompleteUpload implements file.UploadStore.
func (s Files) CompleteUpload(ctx context.Context, r file.Recording, entry audit.Entry) (*file.File, error) {
	return transact(ctx, s.db, func(tx *transaction) (recorded *file.File, err error) {
		if _, err := lockFiles(tx, r.File.WorkspaceID); err != nil {
			return recorded, err
		}
		removed, err := removeUpload(tx, r.File.WorkspaceID, r.File.ID)
		if err != nil || !removed {
			return recorded, err
		}
		f, err := recordFile(tx, r, "")
		if err != nil {
			return recorded, err
		}
		recorded = &f
		return recorded, insertAudit(tx, entry)
	})
}

// DeleteUpload implements file.UploadStore.
func (s Files) DeleteUpload(ctx context.Context, workspaceID, id string) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (deleted bool, err error) {
		if _, err := lockFiles(tx, workspaceID); err != nil {
			return deleted, err
		}
		deleted, err = removeUpload(tx, workspaceID, id)
		return deleted, err
	})
}

// removeUpload removes an upload with its parts. The files of the workspace are locked.
func removeUpload(tx *transaction, workspaceID, id string) (bool, error) {
	var size *int64
	err := tx.Query(`DELETE FROM uploads WHERE id = $1 AND workspace_id = $2 RETURNING size`, []any{id, workspaceID}, func(r database.Row) error { return r.Scan(&size) })
	if err != nil || size == nil {
		return false, err
	}
	parts, err := partsOf(tx, id)
	if err != nil {
		return false, err
	}
	for _, p := range parts {
		if err := abandonBlob(tx, p.Blob); err != nil {
			return false, err
		}
	}
	if err := tx.Do(`DELETE FROM upload_parts WHERE upload_id = $1`, id); err != nil {
		return false, err
	}
	return true, addUploading(tx, workspaceID, -*size)
}

// SweepUploads implements file.SweepStore.
func (s Files) SweepUploads(ctx context.Context, now time.Time) (bool, error) {
	return transact(ctx, s.db, func(tx *transaction) (removed bool, err error) {
		type expired struct{ id, workspace string }
		old, err := database.One(tx, `SELECT id, workspace_id FROM uploads WHERE expires_at <= $1 ORDER BY expires_at LIMIT 1`, []any{now}, func(r database.Row) (e expired, err error) {
			err = r.Scan(&e.id, &e.workspace)
			return e, err
		})
		if err != nil || old == nil {
			return removed, err
		}
		if _, err := lockFiles(tx, old.workspace); err != nil {
			return removed, err
		}
		removed, err = removeUpload(tx, old.workspace, old.id)
		return removed, err
	})
}
