package blobtest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
)

// Memory is a blob.Store in memory, whose bytes a test can change.
type Memory struct {
	mu      sync.Mutex
	blobs   map[blob.ID]stored
	uploads map[*memoryUpload]struct{}
}

type stored struct {
	bytes []byte
	at    time.Time
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{blobs: map[blob.ID]stored{}, uploads: map[*memoryUpload]struct{}{}}
}

// Bytes returns a copy of the stored bytes of a blob.
func (m *Memory) Bytes(id blob.ID) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.blobs[id].bytes)
}

// Put replaces the stored bytes of a blob.
func (m *Memory) Put(id blob.ID, content []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[id] = stored{bytes: bytes.Clone(content), at: clock.Now()}
}

// Begin implements blob.Store.
func (m *Memory) Begin(ctx context.Context, id blob.ID) (blob.Upload, error) {
	if err := ready(ctx, id); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, exists := m.blobs[id]; exists {
		return nil, blob.ErrExists
	}
	u := &memoryUpload{store: m, ctx: ctx, id: id, began: clock.Now()}
	m.uploads[u] = struct{}{}
	return u, nil
}

// Open implements blob.Store.
func (m *Memory) Open(ctx context.Context, id blob.ID, offset, length int64) (io.ReadCloser, error) {
	if err := ready(ctx, id); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found, exists := m.blobs[id]
	if !exists {
		return nil, blob.ErrNotFound
	}
	content := found.bytes[min(offset, int64(len(found.bytes))):]
	content = content[:min(length, int64(len(content)))]
	return io.NopCloser(&contextReader{ctx: ctx, from: bytes.NewReader(content)}), nil
}

// Delete implements blob.Store.
func (m *Memory) Delete(ctx context.Context, id blob.ID) error {
	if err := ready(ctx, id); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.blobs, id)
	return nil
}

// List implements blob.Store.
func (m *Memory) List(ctx context.Context, page paging.Request) (paging.Page[blob.Info], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []blob.Info
	for _, id := range slices.Sorted(maps.Keys(m.blobs)) {
		if string(id) > page.After {
			found = append(found, blob.Info{ID: id, Size: int64(len(m.blobs[id].bytes)), Created: m.blobs[id].at})
		}
	}
	limit := blob.PageLimit(page)
	if len(found) > limit {
		found = found[:limit+1]
	}
	return paging.Cut(found, limit, func(i blob.Info) string { return string(i.ID) }), ctx.Err()
}

// Sweep implements blob.Store.
func (m *Memory) Sweep(ctx context.Context, before time.Time) (removed int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for u := range m.uploads {
		if u.began.Before(before) {
			u.done = true
			delete(m.uploads, u)
			removed++
		}
	}
	return removed, ctx.Err()
}

func ready(ctx context.Context, id blob.ID) error {
	if err := id.Check(); err != nil {
		return err
	}
	return ctx.Err()
}

type memoryUpload struct {
	store *Memory
	ctx   context.Context
	id    blob.ID
	began time.Time
	bytes []byte
	done  bool
}

func (u *memoryUpload) Write(p []byte) (int, error) {
	if u.done {
		return 0, blob.ErrFinished
	}
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	u.bytes = append(u.bytes, p...)
	return len(p), nil
}

func (u *memoryUpload) Commit() error {
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	if u.done {
		return blob.ErrFinished
	}
	if err := u.ctx.Err(); err != nil {
		return err
	}
	u.done = true
	delete(u.store.uploads, u)
	u.store.blobs[u.id] = stored{bytes: u.bytes, at: clock.Now()}
	return nil
}

func (u *memoryUpload) Abort() error {
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	u.done = true
	delete(u.store.uploads, u)
	return nil
}

type contextReader struct {
	ctx  context.Context
	from io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}
