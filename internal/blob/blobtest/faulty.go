package blobtest

import (
	"context"
	"io"
	"sync"

	"github.com/stepmill/stepmill/internal/blob"
)

// Operation is what a Faulty store can fail at.
type Operation string

// The operations.
const (
	Begin  Operation = "begin"
	Write  Operation = "write"
	Commit Operation = "commit"
	Open   Operation = "open"
	Read   Operation = "read"
	Delete Operation = "delete"
)

// Faulty is a blob.Store that fails, or waits, where a test says so.
type Faulty struct {
	blob.Store

	mu   sync.Mutex
	errs map[Operation]error
	wait map[Operation]<-chan struct{}
}

// NewFaulty returns a store that works until Fail or Stall is called.
func NewFaulty(store blob.Store) *Faulty {
	return &Faulty{Store: store, errs: map[Operation]error{}, wait: map[Operation]<-chan struct{}{}}
}

// Fail makes an operation return an error, or with nil work again.
func (f *Faulty) Fail(op Operation, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs[op] = err
}

// Stall makes an operation wait until the channel is closed or its context ends.
func (f *Faulty) Stall(op Operation, until <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wait[op] = until
}

func (f *Faulty) before(ctx context.Context, op Operation) error {
	f.mu.Lock()
	err, wait := f.errs[op], f.wait[op]
	f.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// Begin implements blob.Store.
func (f *Faulty) Begin(ctx context.Context, id blob.ID) (blob.Upload, error) {
	if err := f.before(ctx, Begin); err != nil {
		return nil, err
	}
	u, err := f.Store.Begin(ctx, id)
	if err != nil {
		return nil, err
	}
	return &faultyUpload{u, f, ctx}, nil
}

type faultyUpload struct {
	blob.Upload
	store *Faulty
	ctx   context.Context
}

// Write implements blob.Upload.
func (u *faultyUpload) Write(p []byte) (int, error) {
	if err := u.store.before(u.ctx, Write); err != nil {
		return 0, err
	}
	return u.Upload.Write(p)
}

// Commit implements blob.Upload.
func (u *faultyUpload) Commit() error {
	if err := u.store.before(u.ctx, Commit); err != nil {
		return err
	}
	return u.Upload.Commit()
}

// Open implements blob.Store.
func (f *Faulty) Open(ctx context.Context, id blob.ID, offset, length int64) (io.ReadCloser, error) {
	if err := f.before(ctx, Open); err != nil {
		return nil, err
	}
	r, err := f.Store.Open(ctx, id, offset, length)
	if err != nil {
		return nil, err
	}
	return &faultyReader{r, f, ctx}, nil
}

type faultyReader struct {
	io.ReadCloser
	store *Faulty
	ctx   context.Context
}

// Read implements io.Reader.
func (r *faultyReader) Read(p []byte) (int, error) {
	if err := r.store.before(r.ctx, Read); err != nil {
		return 0, err
	}
	return r.ReadCloser.Read(p)
}

// Delete implements blob.Store.
func (f *Faulty) Delete(ctx context.Context, id blob.ID) error {
	if err := f.before(ctx, Delete); err != nil {
		return err
	}
	return f.Store.Delete(ctx, id)
}
