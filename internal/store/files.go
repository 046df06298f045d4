package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
)

// Files implements file.Store: files, what refers to them, and uploads.
type Files struct {
	db *DB
	fileReader
}

// Resumable uploads are not exported.
var fileUsageTable = Table{Name: "file_usage", Key: "owner", Text: "owner", Int: "files bytes", NotExported: "uploading"}

var fileBlobsTable = Table{Name: "file_blobs", Key: "id", Text: "id workspace_id sha256", Int: "size files"}

var fileRows = mapTable("files", "id", func(f *file.File) []any {
	return []any{
		"id", &f.ID, "workspace_id", &f.WorkspaceID, "blob_id", (*string)(&f.Blob), "name", &f.Name, "type", &f.Type, "size", &f.Size, "sha256", &f.SHA256,
		"list", fileList(&f.List), "holders", unbound(archive.Int), "created_at", &f.CreatedAt, "expires_at", &f.ExpiresAt,
	}
})

// liveFile is the condition for files that have not expired at $3.
const liveFile = `(expires_at IS NULL OR expires_at > $3)`

// storedList is a list file's part of its row.
type storedList struct {
	Count int   `json:"count"`
	First []any `json:"first"`
}

// fileList is stored as JSON, or as NULL if a file is no list.
func fileList(list **expr.FileList) converted {
	text := new([]byte)
	decode := func() (err error) {
		if *text != nil {
			*list, err = decodeList(*text)
		}
		return err
	}
	return converted{archive.Text, text, decode, func() (any, error) {
		if *list == nil {
			return nil, nil
		}
		encoded, err := json.Marshal(storedList(**list))
		return string(encoded), err
	}}
}

// decodeList keeps the exact numbers of the items, as they are in expressions.
func decodeList(text []byte) (*expr.FileList, error) {
	v, err := expr.FromJSON(text)
	if err != nil {
		return nil, err
	}
	members, _ := v.(map[string]any)
	count, _ := members["count"].(int)
	first, _ := members["first"].([]any)
	return &expr.FileList{Count: count, First: first}, nil
}

// fileReader reads files, also for the stores that embed it.
type fileReader struct{ db *DB }

// File implements file.Store.
func (s fileReader) File(ctx context.Context, workspaceID, id string, now time.Time) (*file.File, error) {
	return readOne(ctx, s.db, fileRows.selects()+`WHERE id = $1 AND workspace_id = $2 AND `+liveFile, []any{id, workspaceID, now}, fileRows.scan)
}

// Files implements file.Store.
func (s Files) Files(ctx context.Context, workspaceID string, now time.Time, page paging.Request) (paging.Page[file.File], error) {
	found, err := readList(ctx, s.db, fileRows.selects()+`WHERE workspace_id = $1 AND id < $2 AND `+liveFile+` ORDER BY id DESC LIMIT $4`,
		[]any{workspaceID, before(page.After), now, page.Limit + 1}, fileRows.scan)
	return paging.Cut(found, page.Limit, func(f file.File) string { return f.ID }), err
}

// RecordFiles implements file.Store.
func (s Files) RecordFiles(ctx context.Context, files []file.Recording, holder file.Holder, entries []audit.Entry) ([]file.File, error) {
	return transact(ctx, s.db, func(tx *transaction) (recorded []file.File, err error) {
		for _, r := range files {
			f, err := recordFile(tx, r, holder)
			if err != nil {
				return recorded, err
			}
			recorded = append(recorded, f)
		}
		for _, entry := range entries {
			if err := insertAudit(tx, entry); err != nil {
				return recorded, err
			}
		}
		return recorded, nil
	})
}

// recordFile records a file whose bytes are stored, and what refers to it. Without a
// holder the file expires. If the workspace has equal bytes already, the file uses
// those, and the new ones are deleted after the commit. A fault means that nothing was
// written.
func recordFile(tx *transaction, r file.Recording, holder file.Holder) (file.File, error) {
	f := r.File
	have, err := lockFiles(tx, f.WorkspaceID)
	if err != nil {
		return f, err
	}
	existing, err := database.One(tx, `SELECT id FROM file_blobs WHERE workspace_id = $1 AND sha256 = $2`, []any{f.WorkspaceID, f.SHA256}, scanText)
	if err != nil {
		return f, err
	}
	added := f.Size
	if existing != nil {
		added = 0
	}
	if err := r.CheckWorkspace(have.Bytes + have.Uploading + added); err != nil {
		return f, err
	}
	if r.RunID != "" {
		run, err := fileUsage(tx, r.RunID)
		if err != nil {
			return f, err
		}
		if err := r.CheckRun(run.Bytes + f.Size); err != nil {
			return f, err
		}
		if err := addFiles(tx, r.RunID, 1, f.Size); err != nil {
			return f, err
		}
	}
	if err := addFiles(tx, f.WorkspaceID, 1, added); err != nil {
		return f, err
	}
	if f.Blob, err = shareBlob(tx, f, existing); err != nil {
		return f, err
	}
	err = insertFile(tx, &f, holder)
	return f, err
}

// shareBlob returns the blob with the bytes of a new file: the existing one, or the
// file's own.
func shareBlob(tx *transaction, f file.File, existing *string) (blob.ID, error) {
	if existing == nil {
		return f.Blob, tx.Do(`INSERT INTO file_blobs (id, workspace_id, sha256, size, files) VALUES ($1, $2, $3, $4, 1)`,
			string(f.Blob), f.WorkspaceID, f.SHA256, f.Size)
	}
	if err := tx.Do(`UPDATE file_blobs SET files = files + 1 WHERE id = $1`, *existing); err != nil {
		return "", err
	}
	return blob.ID(*existing), abandonBlob(tx, f.Blob)
}

func insertFile(tx *transaction, f *file.File, holder file.Holder) error {
	holders := 0
	f.ExpiresAt = nil
	if holder == "" {
		expires := f.CreatedAt.Add(file.UnreferencedFor)
		f.ExpiresAt = &expires
	} else {
		holders = 1
		if err := tx.Do(`INSERT INTO file_refs (holder, file_id, workspace_id) VALUES ($1, $2, $3)`, string(holder), f.ID, f.WorkspaceID); err != nil {
			return err
		}
	}
	return fileRows.insertInto(tx, *f, "holders", holders)
}

// DeleteFile implements file.Store.
func (s Files) DeleteFile(ctx context.Context, workspaceID, id string, now time.Time, entry audit.Entry) (file.Deletion, error) {
	return transact(ctx, s.db, func(tx *transaction) (outcome file.Deletion, err error) {
		outcome = file.NotThere
		if _, err := lockFiles(tx, workspaceID); err != nil {
			return outcome, err
		}
		// An UPDATE locks the row, so that no reference is added meanwhile.
		n, err := tx.Exec(`UPDATE files SET expires_at = $3 WHERE id = $1 AND workspace_id = $2 AND holders = 0 AND expires_at > $3`, id, workspaceID, now)
		if err != nil {
			return outcome, err
		}
		if n == 0 {
			held, err := database.Number(tx, `SELECT count(*) FROM files WHERE id = $1 AND workspace_id = $2 AND holders > 0`, id, workspaceID)
			if held > 0 {
				outcome = file.InUse
			}
			return outcome, err
		}
		outcome = file.Deleted
		if err := removeFiles(tx, workspaceID, []string{id}, now); err != nil {
			return outcome, err
		}
		return outcome, insertAudit(tx, entry)
	})
}

// FileUsage implements file.Store.
func (s Files) FileUsage(ctx context.Context, owner string) (file.Usage, error) {
	return view(ctx, s.db, func(c database.Conn) (file.Usage, error) { return fileUsage(c, owner) })
}

func fileUsage(c database.Conn, owner string) (have file.Usage, err error) {
	err = c.Query(`SELECT files, bytes, uploading FROM file_usage WHERE owner = $1`, []any{owner}, func(r database.Row) error {
		return r.Scan(&have.Files, &have.Bytes, &have.Uploading)
	})
	return have, err
}

// lockFiles serializes what adds and removes files of a workspace until the end of
// the transaction, and returns how much it stores. It comes after lockState.
func lockFiles(tx *transaction, workspaceID string) (have file.Usage, err error) {
	err = tx.Query(`INSERT INTO file_usage (owner, files, bytes) VALUES ($1, 0, 0)
		ON CONFLICT (owner) DO UPDATE SET files = file_usage.files RETURNING files, bytes, uploading`,
		[]any{workspaceID}, func(r database.Row) error { return r.Scan(&have.Files, &have.Bytes, &have.Uploading) })
	return have, err
}

// addFiles counts files of a workspace or a run.
func addFiles(tx *transaction, owner string, files, bytes int64) error {
	return tx.Do(`INSERT INTO file_usage (owner, files, bytes) VALUES ($1, $2, $3)
		ON CONFLICT (owner) DO UPDATE SET files = file_usage.files + excluded.files, bytes = file_usage.bytes + excluded.bytes`, owner, files, bytes)
}

// FilesPlace implements file.SweepStore.
func (s Files) FilesPlace(ctx context.Context, place string, mayMove bool) (recorded string, err error) {
	read := func(c database.Conn) error {
		return c.Query(`SELECT place FROM files_place WHERE id = 1`, nil, func(r database.Row) error { return r.Scan(&recorded) })
	}
	// A server also starts on a full disk, so nothing is written without a reason.
	if err := s.db.read(ctx, read); err != nil || recorded == place {
		return recorded, err
	}
	err = s.db.write(ctx, func(tx *transaction) error {
		if err := tx.Do(`INSERT INTO files_place (id, place) VALUES (1, $1) ON CONFLICT (id) DO NOTHING`, place); err != nil {
			return err
		}
		if mayMove {
			if err := tx.Do(`UPDATE files_place SET place = $1 WHERE id = 1 AND NOT EXISTS (SELECT 1 FROM file_blobs) AND NOT EXISTS (SELECT 1 FROM upload_parts)`, place); err != nil {
				return err
			}
		}
		return read(tx)
	})
	return recorded, err
}

// InstallationID implements file.SweepStore. The first workspace is never deleted.
func (s Files) InstallationID(ctx context.Context) (string, error) {
	return readValue[string](ctx, s.db, `SELECT first_workspace_id FROM installation WHERE id = 1`)
}
