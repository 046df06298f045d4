package blob_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/blob/blobtest"
)

// The store that other tests use must itself behave like one.
func TestMemoryConformance(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, blobtest.Backend{
		Open:     func(*testing.T) blob.Store { return blobtest.NewMemory() },
		Boundary: 64 << 10,
	})
}

func TestNewID(t *testing.T) {
	t.Parallel()
	seen := map[blob.ID]bool{}
	for range 1000 {
		id := blob.NewID()
		if err := id.Check(); err != nil || seen[id] {
			t.Fatalf("%q: seen before: %t, %v", id, seen[id], err)
		}
		seen[id] = true
	}
}
