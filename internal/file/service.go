package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fairqueue"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/uid"
)

// Capacity is what the storage can take.
type Capacity struct {
	// FileBytes is the maximum size of a file; 0: that of the plan applies.
	FileBytes int64
	// Writers is how many files are written at the same time, Readers how many
	// downloads there are. One workspace gets a quarter of them.
	Writers, Readers int
	// IO is how many of them read or write a block at the same time. Workspaces take
	// turns, and one of them gets three quarters.
	IO int
}

// Service manages the files of workspaces.
type Service struct {
	store     Store
	blobs     blob.Store
	keys      *blob.SealedStore
	log       *slog.Logger
	fileBytes int64 // the maximum size of a file in the storage

	writers, readers, io *fairqueue.Queue
	reserved             *reservations
	uploads              uploadLocks
	stats                stats
	// started is when the process started, if no other one stores blobs in the same
	// place: the first sweep takes older blobs that nobody knows of for orphans. Later
	// ones do not, because the clock may have been set back.
	started      time.Time
	orphansFound time.Time // when orphans were looked for last
	kept         kept
	admit        func(inRun bool) error
}

// Config holds what a Service needs.
type Config struct {
	Store    Store
	Blobs    blob.Store
	Keys     blob.Keys
	Capacity Capacity
	// Exclusive is set if no other process stores blobs in the same place.
	Exclusive bool
	// KeepBytes reports whether no bytes may be deleted for now; nil: never.
	KeepBytes func() bool
	// Admit returns an error while there is too little space for more bytes, of uploads
	// or of files that runs create; nil: there is always enough.
	Admit func(inRun bool) error
	Log   *slog.Logger
}

// NewService returns a service.
func NewService(c Config) *Service {
	s := &Service{
		store: c.Store, blobs: c.Blobs, keys: blob.NewSealedStore(c.Blobs, c.Keys), log: c.Log,
		writers:  fairqueue.New(c.Capacity.Writers, max(1, c.Capacity.Writers/4), 0),
		readers:  fairqueue.New(c.Capacity.Readers, max(1, c.Capacity.Readers/4), 0),
		io:       fairqueue.New(c.Capacity.IO, max(1, c.Capacity.IO*3/4), 0),
		reserved: &reservations{bytes: map[string]int64{}}, fileBytes: cmp.Or(c.Capacity.FileBytes, math.MaxInt64),
	}
	s.kept.while = c.KeepBytes
	if s.admit = c.Admit; s.admit == nil {
		s.admit = func(bool) error { return nil }
	}
	if c.Exclusive {
		s.started = clock.Now()
	}
	return s
}

// Get returns a file.
func (s *Service) Get(ctx context.Context, workspaceID, id string) (File, error) {
	if !uid.Valid(uid.File, id) {
		return File{}, NotFound(id)
	}
	found, err := s.store.File(ctx, workspaceID, id, clock.Now())
	return fault.Found(found, err, NotFound, id)
}

// List lists the files of a workspace, newest first.
func (s *Service) List(ctx context.Context, workspaceID string, page paging.Request) (paging.Page[File], error) {
	return s.store.Files(ctx, workspaceID, clock.Now(), page)
}

// MaxBytes returns the maximum size of a file: that of the plan, or that of the storage
// if it is smaller.
func (s *Service) MaxBytes(plan auth.Plan) int64 { return min(plan.Limits().FileBytes, s.fileBytes) }

// CheckSize returns a fault if a file of a plan may not have that many bytes.
func (s *Service) CheckSize(plan auth.Plan, size int64) error {
	if size > s.MaxBytes(plan) {
		return s.tooLarge(plan)
	}
	return nil
}

func (s *Service) tooLarge(plan auth.Plan) error {
	if limit := plan.Limits().FileBytes; limit <= s.fileBytes {
		return fault.New(fault.FileTooLarge, "the file is too large: the %s plan allows %d bytes (file_bytes)", plan, limit)
	}
	return fault.New(fault.FileTooLarge, "the file is too large: the file storage of this installation allows %d bytes", s.fileBytes)
}

// Record records uploads, all or none of them. They expire unless something refers to
// them in time.
func (s *Service) Record(ctx context.Context, actor auth.Actor, files ...File) ([]File, error) {
	var uploads []Recording
	var entries []audit.Entry
	for _, f := range files {
		uploads = append(uploads, Recording{File: f, Plan: actor.Workspace.Plan})
		entries = append(entries, actor.AuditEntry("file.uploaded", "file", f.ID, map[string]any{"name": f.Name, "size": f.Size}))
	}
	recorded, err := s.store.RecordFiles(ctx, uploads, "", entries)
	if fault.Is(err, fault.FileStorageExceeded) {
		s.Discard(ctx, files...)
	}
	return recorded, err
}

// Keep records a file that nothing refers to, so that it is kept like an upload.
func (s *Service) Keep(ctx context.Context, o Owner, f File) error {
	_, err := s.store.RecordFiles(ctx, []Recording{{File: f, Plan: o.Plan, Checked: true}}, "", nil)
	return err
}

// Discard deletes the bytes of files that are certainly not recorded. After an error
// that leaves this open, they are left to the sweep.
func (s *Service) Discard(ctx context.Context, files ...File) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	for _, f := range files {
		if err := s.blobs.Delete(ctx, f.Blob); err != nil {
			s.log.Warn("cannot delete the bytes of a file that was not recorded; they are deleted later", "error", err)
		}
	}
}

const discardTimeout = 30 * time.Second

// Delete deletes a file that nothing refers to.
func (s *Service) Delete(ctx context.Context, actor auth.Actor, id string) error {
	f, err := s.Get(ctx, actor.Workspace.ID, id)
	if err != nil {
		return err
	}
	entry := actor.AuditEntry("file.deleted", "file", id, map[string]any{"name": f.Name})
	outcome, err := s.store.DeleteFile(ctx, actor.Workspace.ID, id, clock.Now(), entry)
	switch {
	case err != nil:
		return err
	case outcome == InUse:
		return fault.New(fault.FileInUse, "something refers to the file %s, such as a run, a row of a table or a workflow; it is deleted with the last of them", id)
	case outcome == NotThere:
		return NotFound(id)
	}
	return nil
}

// Open reads at most length bytes of a file from an offset on, which must not be beyond
// its end. The context applies until the reader is closed.
func (s *Service) Open(ctx context.Context, workspaceID, id string, offset, length int64) (io.ReadCloser, error) {
	f, err := s.Get(ctx, workspaceID, id)
	if err != nil {
		return nil, err
	}
	return s.OpenFile(ctx, f, offset, length)
}

// OpenFile is like Open for a file that was just read.
func (s *Service) OpenFile(ctx context.Context, f File, offset, length int64) (io.ReadCloser, error) {
	return s.openBlob(ctx, blob.Ref{Workspace: f.WorkspaceID, ID: f.Blob, Size: f.Size}, offset, length)
}

func (s *Service) openBlob(ctx context.Context, ref blob.Ref, offset, length int64) (io.ReadCloser, error) {
	release, err := s.io.Acquire(ctx, ref.Workspace)
	if err != nil {
		return nil, err
	}
	defer release()
	source, err := s.keys.Open(ctx, ref, offset, length)
	if err != nil {
		return nil, explain("read a file", err)
	}
	return &reader{service: s, ctx: ctx, workspaceID: ref.Workspace, source: source}, nil
}

// AcquireDownload waits until the workspace may have another download, and returns a
// function that must be called when it has ended.
func (s *Service) AcquireDownload(ctx context.Context, workspaceID string) (release func(), err error) {
	return s.readers.Acquire(ctx, workspaceID)
}

// reader reads a file. Each read waits for the turn of the workspace.
type reader struct {
	service     *Service
	ctx         context.Context
	workspaceID string
	source      io.ReadCloser
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	release, err := r.service.io.Acquire(r.ctx, r.workspaceID)
	if err != nil {
		return 0, err
	}
	defer release()
	n, err := r.source.Read(p)
	r.service.stats.read.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		err = explain("read a file", err)
	}
	return n, err
}

// Close implements io.Closer.
func (r *reader) Close() error { return r.source.Close() }

// explain turns an error of the storage into what a client may see.
func explain(operation string, err error) error {
	switch _, known := fault.As(err); {
	case err == nil, known, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, blob.ErrTooLarge):
		return fault.New(fault.FileTooLarge, "the file is too large for the file storage of this installation").Because(err)
	case errors.Is(err, blob.ErrDenied):
		return fault.New(fault.Unavailable, "the file storage of this installation denies access; its operator can find the reason in the log").Because(err)
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// stats counts since the start of the process.
type stats struct {
	written, read, files           atomic.Int64
	removed, blobsDeleted, orphans atomic.Int64
}

// Stats is a snapshot of the counts of a Service.
type Stats struct {
	BytesWritten, BytesRead, FilesWritten int64
	FilesRemoved, BlobsDeleted, Orphans   int64
	Writing, WaitingToWrite, Downloads    int
}

// Stats returns the counts since the start of the process.
func (s *Service) Stats() Stats {
	out := Stats{
		BytesWritten: s.stats.written.Load(), BytesRead: s.stats.read.Load(), FilesWritten: s.stats.files.Load(),
		FilesRemoved: s.stats.removed.Load(), BlobsDeleted: s.stats.blobsDeleted.Load(), Orphans: s.stats.orphans.Load(),
	}
	out.Writing, out.WaitingToWrite = s.writers.Stats()
	out.Downloads, _ = s.readers.Stats()
	return out
}
