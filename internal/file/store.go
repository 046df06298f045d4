package file

import (
	"context"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
)

// Recording is a file whose bytes are stored and that is about to be recorded.
type Recording struct {
	File File
	Plan auth.Plan
	// RunID is the run that created it; empty: an upload.
	RunID string
	// Checked means that the limits were checked while the file was written.
	Checked bool
}

// CheckRun returns a fault if the files that the run has created may not have that
// many bytes together.
func (r Recording) CheckRun(bytes int64) error {
	if allowed := r.Plan.Limits().RunFileBytes; bytes > allowed && !r.Checked {
		return runTooLarge(r.Plan, allowed)
	}
	return nil
}

// CheckWorkspace returns a fault if the files of the workspace may not have that many
// bytes together.
func (r Recording) CheckWorkspace(bytes int64) error {
	if allowed := r.Plan.Limits().StoredFileBytes; bytes > allowed && !r.Checked {
		return storageExceeded(r.Plan, allowed)
	}
	return nil
}

func runTooLarge(plan auth.Plan, allowed int64) error {
	return fault.New(fault.RunFilesTooLarge, "the files of the run are too large: the %s plan allows %d bytes for all files that a run creates (run_file_bytes)", plan, allowed)
}

func storageExceeded(plan auth.Plan, allowed int64) error {
	return fault.New(fault.FileStorageExceeded, "the file storage of the workspace is full: the %s plan allows %d bytes (stored_file_bytes); delete files, or what refers to them, first", plan, allowed)
}

// NotFound returns the error for a file that does not exist.
func NotFound(id string) error {
	return fault.New(fault.FileNotFound, "there is no file %q", id)
}

// Usage is what a workspace stores, or a run has created.
type Usage struct {
	Files int64
	Bytes int64
	// Uploading is what resumable uploads of a workspace have announced.
	Uploading int64
}

// Deletion is the outcome of deleting a file.
type Deletion int

// The outcomes.
const (
	NotThere Deletion = iota
	InUse
	Deleted
)

// Store persists files and what refers to them.
type Store interface {
	// RecordFiles records files, all or none. Without a holder they expire. Uploads have
	// entries for the audit log.
	RecordFiles(ctx context.Context, files []Recording, holder Holder, entries []audit.Entry) ([]File, error)
	// File returns a file that has not expired, or nil.
	File(ctx context.Context, workspaceID, id string, now time.Time) (*File, error)
	// Files lists the files that have not expired, newest first.
	Files(ctx context.Context, workspaceID string, now time.Time, page paging.Request) (paging.Page[File], error)
	// DeleteFile deletes a file that nothing refers to.
	DeleteFile(ctx context.Context, workspaceID, id string, now time.Time, entry audit.Entry) (Deletion, error)
	// FileUsage returns the usage of a workspace or a run.
	FileUsage(ctx context.Context, owner string) (Usage, error)

	// HoldFiles adds references, ReplaceFiles also removes all others of the holder,
	// and DropHolder removes all. Files without references expire at once. A file that
	// does not exist is the error file_not_found.
	HoldFiles(ctx context.Context, workspaceID string, holder Holder, ids []string, now time.Time) error
	ReplaceFiles(ctx context.Context, workspaceID string, holder Holder, ids []string, now time.Time) error
	DropHolder(ctx context.Context, holder Holder, now time.Time) error

	UploadStore
	SweepStore
}

// UploadStore persists resumable uploads.
type UploadStore interface {
	// InsertUpload adds an upload if the check of what the workspace has, and how many
	// uploads there are, returns nil.
	InsertUpload(ctx context.Context, u Upload, check func(have Usage, uploads int) error) error
	// Upload returns an upload that has not expired, or nil.
	Upload(ctx context.Context, workspaceID, id string, now time.Time) (*Upload, error)
	// AddPart adds a part, whose bytes are durable, to an upload that has received
	// everything before it. Otherwise it returns false, and the bytes are abandoned.
	AddPart(ctx context.Context, workspaceID, id string, p Part, now time.Time) (bool, error)
	// Parts returns the parts of an upload in order.
	Parts(ctx context.Context, id string) ([]Part, error)
	// CompleteUpload replaces an upload with the file of the same id. It returns nil if
	// the upload no longer exists.
	CompleteUpload(ctx context.Context, r Recording, entry audit.Entry) (*File, error)
	DeleteUpload(ctx context.Context, workspaceID, id string) (bool, error)
}

// SweepStore finds what can be removed.
type SweepStore interface {
	// SweepFiles removes up to limit expired files of one workspace and returns how many.
	SweepFiles(ctx context.Context, now time.Time, limit int) (int, error)
	// SweepUploads removes an expired upload and returns false if there is none.
	SweepUploads(ctx context.Context, now time.Time) (bool, error)
	// AbandonedBlobs returns blobs that nothing refers to any more, ForgetBlobs is
	// called once their bytes are deleted.
	AbandonedBlobs(ctx context.Context, limit int) ([]blob.ID, error)
	ForgetBlobs(ctx context.Context, ids []blob.ID) error
	// KnownBlobs returns the blobs between two ids that something refers to.
	KnownBlobs(ctx context.Context, first, last blob.ID) ([]blob.ID, error)
	// FilesPlace records where the bytes of files are, unless that is recorded already,
	// and returns what is recorded. With mayMove, the place can change as long as there
	// are no files.
	FilesPlace(ctx context.Context, place string, mayMove bool) (string, error)
	// InstallationID returns what identifies the installation, also after an export and
	// an import; empty if it is not set up yet.
	InstallationID(ctx context.Context) (string, error)
}

// Upload is a resumable upload that is not complete. Its id is that of the future file.
type Upload struct {
	ID          string
	WorkspaceID string
	Name        string
	Type        string
	Metadata    string // as the client sent it
	Size        int64
	Received    int64
	CreatedAt   time.Time
	ExpiresAt   time.Time
	// Complete is set if it has become a file.
	Complete bool
}

// Part is a part of an upload, stored in a blob of its own.
type Part struct {
	Start int64 // the offset of its first byte
	Size  int64
	Blob  blob.ID
}
