package store

import (
	"context"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/file"
)

// BlobsOfFiles returns up to limit blobs of all workspaces after an id.
func (s Files) BlobsOfFiles(ctx context.Context, after blob.ID, limit int) ([]blob.Ref, error) {
	return readList(ctx, s.db, `SELECT id, workspace_id, size FROM file_blobs WHERE id > $1 ORDER BY id LIMIT $2`, []any{string(after), limit}, func(r database.Row) (ref blob.Ref, err error) {
		err = r.Scan((*string)(&ref.ID), &ref.Workspace, &ref.Size)
		return ref, err
	})
}

// FilesOfBlob returns the files that share a blob. It reads all files of the workspace.
func (s Files) FilesOfBlob(ctx context.Context, ref blob.Ref) ([]file.File, error) {
	return readList(ctx, s.db, fileRows.selects()+`WHERE workspace_id = $1 AND blob_id = $2 ORDER BY id`, []any{ref.Workspace, string(ref.ID)}, fileRows.scan)
}
