package file

import (
	"context"
	"errors"
	"hash"
	"io"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/uid"
)

const (
	// uploadTime is how long a resumable upload may take.
	uploadTime = 24 * time.Hour
	// maxUploads is how many unfinished uploads a workspace may have.
	maxUploads = 100
	// partSize is how many bytes are received before they are made durable: what a
	// crash costs a client at most.
	partSize = 8 << 20
)

// NoUpload returns the error for an upload that does not exist.
func NoUpload(id string) error {
	return fault.New(fault.UploadNotFound, "there is no upload %q, or it has expired", id)
}

// CreateUpload begins a resumable upload. Its whole size counts as stored from now on.
func (s *Service) CreateUpload(ctx context.Context, actor auth.Actor, name, mediaType, metadata string, size int64) (Upload, error) {
	now, plan := clock.Now(), actor.Workspace.Plan
	u := Upload{
		ID: uid.At(uid.File, now), WorkspaceID: actor.Workspace.ID, Name: SafeName(name), Type: SafeType(mediaType), Metadata: metadata,
		Size: size, CreatedAt: now, ExpiresAt: now.Add(uploadTime),
	}
	if err := s.CheckSize(plan, size); err != nil {
		return u, err
	}
	err := s.store.InsertUpload(ctx, u, func(have Usage, uploads int) error {
		if uploads >= maxUploads {
			return fault.New(fault.TooManyUploads, "the workspace has %d unfinished uploads: complete or end one first", uploads).After(time.Minute)
		}
		return Recording{Plan: plan}.CheckWorkspace(have.Bytes + have.Uploading + size)
	})
	if err != nil || size > 0 {
		return u, err
	}
	return u, s.complete(ctx, actor, u)
}

// Upload returns an upload. One that has received everything is completed, so whoever
// sees that can use the file. It also finds those that are complete.
func (s *Service) Upload(ctx context.Context, actor auth.Actor, id string) (Upload, error) {
	u, err := s.upload(ctx, actor, id)
	if err != nil || u.Received < u.Size || u.Complete {
		return u, err
	}
	unlock, err := s.uploads.lock(id)
	if err != nil {
		return u, err
	}
	defer unlock()
	return u, s.complete(ctx, actor, u)
}

func (s *Service) upload(ctx context.Context, actor auth.Actor, id string) (Upload, error) {
	if !uid.Valid(uid.File, id) {
		return Upload{}, NoUpload(id)
	}
	found, err := s.store.Upload(ctx, actor.Workspace.ID, id, clock.Now())
	if err != nil || found != nil {
		return fault.Found(found, err, NoUpload, id)
	}
	f, err := s.Get(ctx, actor.Workspace.ID, id)
	if fault.Is(err, fault.FileNotFound) {
		err = NoUpload(id)
	}
	return Upload{
		ID: f.ID, WorkspaceID: f.WorkspaceID, Name: f.Name, Type: f.Type, Size: f.Size, Received: f.Size, CreatedAt: f.CreatedAt, Complete: true,
	}, err
}

// EndUpload ends an upload that is not complete.
func (s *Service) EndUpload(ctx context.Context, actor auth.Actor, id string) error {
	deleted, err := s.store.DeleteUpload(ctx, actor.Workspace.ID, id)
	if err == nil && !deleted {
		err = NoUpload(id)
	}
	return err
}

// Checksum is what the bytes of a request must have.
type Checksum struct {
	Hash hash.Hash
	Sum  []byte
}

// Append adds bytes to an upload, from an offset on which must be the end of what was
// received. What it has received counts, also if the body ends with an error, unless
// there is a checksum: then it is all or nothing. The last bytes complete the upload.
func (s *Service) Append(ctx context.Context, actor auth.Actor, id string, offset int64, body io.Reader, check *Checksum) (Upload, error) {
	unlock, err := s.uploads.lock(id)
	if err != nil {
		return Upload{}, err
	}
	defer unlock()
	u, err := s.upload(ctx, actor, id)
	if err != nil {
		return u, err
	}
	if offset != u.Received {
		return u, fault.New(fault.UploadConflict, "the upload has received %d bytes, so it cannot continue at %d", u.Received, offset)
	}
	// What a client has sent before it disconnected is kept.
	ctx = context.WithoutCancel(ctx)
	for more := true; more && err == nil && u.Received < u.Size; {
		more, err = s.appendPart(ctx, actor, &u, body, check)
	}
	if err == nil && u.Received == u.Size && !u.Complete {
		err = s.complete(ctx, actor, u)
	}
	return u, err
}

// appendPart receives a part and records it. It returns false at the end of the body.
func (s *Service) appendPart(ctx context.Context, actor auth.Actor, u *Upload, body io.Reader, check *Checksum) (more bool, err error) {
	size := min(u.Size-u.Received, partSize)
	if check != nil {
		size = u.Size - u.Received
		body = io.TeeReader(body, check.Hash)
	}
	w, err := s.create(ctx, ownerOf(actor), File{}, size, false)
	if err != nil {
		return false, err
	}
	defer w.Abort()
	_, readErr := io.CopyBuffer(struct{ io.Writer }{w}, io.LimitReader(body, size), make([]byte, copyBuffer))
	if w.err != nil {
		return false, w.err
	}
	if w.Written() == 0 || check != nil && readErr != nil {
		return false, readErr
	}
	if check != nil && string(check.Hash.Sum(nil)) != string(check.Sum) {
		return false, fault.New(fault.ChecksumMismatch, "the bytes do not have the checksum of the request, so they were discarded")
	}
	part, err := w.Finish()
	if err != nil {
		return false, err
	}
	added, err := s.store.AddPart(ctx, u.WorkspaceID, u.ID, Part{Start: u.Received, Size: part.Size, Blob: part.Blob}, clock.Now())
	if err != nil {
		return false, err
	}
	if !added {
		return false, fault.New(fault.UploadConflict, "the upload was continued or ended by another request")
	}
	u.Received += part.Size
	return part.Size == size && check == nil, readErr
}

const copyBuffer = 64 << 10

func ownerOf(actor auth.Actor) Owner {
	return Owner{WorkspaceID: actor.Workspace.ID, Plan: actor.Workspace.Plan}
}

func (s *Service) complete(ctx context.Context, actor auth.Actor, u Upload) error {
	w, err := s.create(ctx, ownerOf(actor), File{ID: u.ID, Name: u.Name, Type: u.Type}, u.Size, false)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := s.join(ctx, w, u); err != nil {
		return err
	}
	f, err := w.Finish()
	if err != nil {
		return err
	}
	entry := actor.AuditEntry("file.uploaded", "file", f.ID, map[string]any{"name": f.Name, "size": f.Size})
	recorded, err := s.store.CompleteUpload(ctx, Recording{File: f, Plan: actor.Workspace.Plan}, entry)
	switch {
	case err == nil && recorded == nil: // completed or ended meanwhile
		s.Discard(ctx, f)
		_, err = s.upload(ctx, actor, u.ID)
	case fault.Is(err, fault.FileStorageExceeded):
		s.Discard(ctx, f)
	}
	return err
}

func (s *Service) join(ctx context.Context, w *Writer, u Upload) error {
	parts, err := s.store.Parts(ctx, u.ID)
	if err != nil {
		return err
	}
	buffer := make([]byte, copyBuffer)
	for _, p := range parts {
		r, err := s.openBlob(ctx, blob.Ref{Workspace: u.WorkspaceID, ID: p.Blob, Size: p.Size}, 0, p.Size)
		if err != nil {
			return err
		}
		_, err = io.CopyBuffer(struct{ io.Writer }{w}, r, buffer)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// uploadLocks lets one request of this process at a time work on an upload. Requests to
// other nodes fail when they record a part.
type uploadLocks struct {
	mu   sync.Mutex
	held map[string]bool
}

func (l *uploadLocks) lock(id string) (unlock func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[id] {
		return nil, fault.New(fault.UploadLocked, "another request is working on the upload").After(time.Second)
	}
	if l.held == nil {
		l.held = map[string]bool{}
	}
	l.held[id] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, id)
	}, nil
}
