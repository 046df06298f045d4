package file_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
)

// agedStore is a store whose blobs appear older than they are.
type agedStore struct {
	blob.Store
	age    time.Duration
	onList func() // nil: nothing happens
}

// List implements blob.Store.
func (s *agedStore) List(ctx context.Context, page paging.Request) (paging.Page[blob.Info], error) {
	if s.onList != nil {
		s.onList()
	}
	found, err := s.Store.List(ctx, page)
	for i := range found.Items {
		found.Items[i].Created = found.Items[i].Created.Add(-s.age)
	}
	return found, err
}

// restartWith starts another service with the blobs of the world.
func (w *world) restartWith(blobs blob.Store) {
	w.Service = file.NewService(file.Config{
		Store: w.in.Files, Blobs: blobs, Keys: w.in.Vault, Capacity: ample, Exclusive: true, Log: slog.New(slog.DiscardHandler),
	})
}

// addOrphan stores bytes that are never recorded.
func (w *world) addOrphan(t *testing.T) {
	t.Helper()
	if _, err := w.create(t, w.owner()).Finish(); err != nil {
		t.Fatal(err)
	}
}

// sweepOrphans looks for orphans and checks how many blobs are left.
func (w *world) sweepOrphans(t *testing.T, want int) {
	t.Helper()
	file.MakeSweepDue(w.Service)
	if err := w.SweepOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.stored(t); n != want {
		t.Errorf("%d blobs are stored, want %d", n, want)
	}
}

// After the clock was set back, new bytes look older than the process. They may not be
// recorded yet, so they are not orphans.
func TestOrphansAfterClockIsSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	w.addOrphan(t)
	blobs := &agedStore{Store: w.blobs}
	w.restartWith(blobs)
	w.sweepOrphans(t, 0)
	w.addOrphan(t)
	blobs.age = time.Hour
	w.sweepOrphans(t, 1)
	blobs.age = 25 * time.Hour
	w.sweepOrphans(t, 0)
}

// A backup that starts during a sweep does not wait for it. The sweep deletes nothing
// from then on.
func TestKeepBytesDuringSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	w.addOrphan(t)
	blobs := &agedStore{Store: w.blobs, age: 25 * time.Hour}
	w.restartWith(blobs)
	release := func() {}
	blobs.onList = func() { release = w.KeepBytes() }
	w.sweepOrphans(t, 1)
	release()
	blobs.onList = nil
	w.sweepOrphans(t, 0)
}
