package file

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/uid"
)

// maxWrite is how long writing a file may take. It is shorter than orphanAge, so the
// bytes of a file that is being written are never taken for those of an orphan.
const maxWrite = 12 * time.Hour

// Owner is on whose behalf a file is created, which determines the limits.
type Owner struct {
	WorkspaceID string
	Plan        auth.Plan
	// RunID is the run whose step creates the file; empty: an upload.
	RunID string
}

// Writer writes the bytes of a new file. It holds 64 KiB in memory, and what the
// storage needs. It is not safe for concurrent use.
type Writer struct {
	service *Service
	ctx     context.Context
	stop    context.CancelFunc
	owner   Owner
	file    File
	upload  *blob.SealedUpload
	claims  []*claim
	release func()
	// atMost is the size that the file may have.
	atMost  int64
	written int64
	err     error // why nothing can be written any more
	done    bool
}

// Create begins a file, once fewer files are being written. The context applies until
// it is finished or aborted, which the caller must do, and before it creates another
// one. The limits of the plan and of the storage are faults: file_too_large,
// run_files_too_large and file_storage_exceeded.
func (s *Service) Create(ctx context.Context, o Owner, name, mediaType string) (*Writer, error) {
	return s.create(ctx, o, File{ID: uid.New(uid.File), Name: SafeName(name), Type: SafeType(mediaType)}, s.MaxBytes(o.Plan), true)
}

// create begins a file of at most the given size. Counted is set if what it stores
// counts against the limits already while it is written.
func (s *Service) create(ctx context.Context, o Owner, f File, atMost int64, counted bool) (*Writer, error) {
	txn.MustBeOutside(ctx)
	if err := s.admit(o.RunID != ""); err != nil {
		return nil, err
	}
	release, err := s.writers.Acquire(ctx, o.WorkspaceID)
	if err != nil {
		return nil, err
	}
	f.WorkspaceID, f.Blob = o.WorkspaceID, blob.NewID()
	w := &Writer{service: s, owner: o, file: f, release: release, atMost: atMost}
	w.ctx, w.stop = context.WithTimeout(ctx, maxWrite)
	if counted {
		err = w.claim()
	}
	if err == nil {
		w.upload, err = s.keys.Begin(w.ctx, o.WorkspaceID, w.file.Blob)
	}
	if err != nil {
		w.Abort()
		return nil, explain("begin a file", err)
	}
	return w, nil
}

func (w *Writer) claim() error {
	limits := w.owner.Plan.Limits()
	have, err := w.service.store.FileUsage(w.ctx, w.owner.WorkspaceID)
	if err != nil {
		return err
	}
	w.claims = append(w.claims, w.service.reserved.claim(w.owner.WorkspaceID, limits.StoredFileBytes-have.Bytes-have.Uploading,
		storageExceeded(w.owner.Plan, limits.StoredFileBytes)))
	if w.owner.RunID == "" {
		return nil
	}
	if have, err = w.service.store.FileUsage(w.ctx, w.owner.RunID); err != nil {
		return err
	}
	w.claims = append(w.claims, w.service.reserved.claim(w.owner.RunID, limits.RunFileBytes-have.Bytes, runTooLarge(w.owner.Plan, limits.RunFileBytes)))
	return nil
}

// Write implements io.Writer. After an error the file can only be aborted.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err == nil {
		w.err = w.write(p)
	}
	if w.err != nil {
		return 0, w.err
	}
	w.written += int64(len(p))
	w.service.stats.written.Add(int64(len(p)))
	return len(p), nil
}

func (w *Writer) write(p []byte) error {
	if int64(len(p)) > w.atMost-w.written {
		return w.service.tooLarge(w.owner.Plan)
	}
	if err := w.service.admit(w.owner.RunID != ""); err != nil {
		return err
	}
	for _, c := range w.claims {
		if err := c.grow(int64(len(p))); err != nil {
			return err
		}
	}
	release, err := w.service.io.Acquire(w.ctx, w.owner.WorkspaceID)
	if err != nil {
		return err
	}
	defer release()
	_, err = w.upload.Write(p)
	return explain("write a file", err)
}

// Written returns the number of bytes written so far.
func (w *Writer) Written() int64 { return w.written }

// Finish makes the bytes durable and returns the file, which exists only once it is
// recorded. The caller records it, or discards it.
func (w *Writer) Finish() (File, error) {
	if w.err == nil {
		w.err = w.commit()
	}
	if w.err != nil {
		w.Abort()
		return File{}, w.err
	}
	w.end()
	w.service.stats.files.Add(1)
	return w.file, nil
}

func (w *Writer) commit() error {
	release, err := w.service.io.Acquire(w.ctx, w.owner.WorkspaceID)
	if err != nil {
		return err
	}
	defer release()
	digest := w.upload.Digest()
	if err := w.upload.Commit(); err != nil {
		return explain("store a file", err)
	}
	w.file.Size, w.file.SHA256, w.file.CreatedAt = digest.Size, hex.EncodeToString(digest.SHA256[:]), clock.Now()
	return nil
}

// Abort discards the file. After Finish it does nothing, so it can be deferred.
func (w *Writer) Abort() {
	if w.done {
		return
	}
	if w.upload != nil {
		if err := w.upload.Abort(); err != nil {
			w.service.log.Warn("cannot discard the bytes of a file; they are deleted later", "error", err)
		}
	}
	w.end()
}

// end gives back what the writer holds.
func (w *Writer) end() {
	w.done = true
	for _, c := range w.claims {
		c.release()
	}
	w.stop()
	w.release()
}
