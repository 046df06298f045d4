package file_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/fault"
)

// While bytes are kept, rows go and bytes stay. Afterwards they are deleted.
func TestKeepBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ample)
	f := w.upload(t, []byte("some bytes"))
	release, second := w.KeepBytes(), w.KeepBytes()
	if err := w.Delete(t.Context(), w.actor, f.ID); err != nil {
		t.Fatal(err)
	}
	sweep := func(want int) {
		t.Helper()
		if _, err := w.SweepExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.SweepOrphans(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.stored(t); got != want {
			t.Errorf("%d blobs are stored, want %d", got, want)
		}
	}
	if _, err := w.Get(t.Context(), w.actor.Workspace.ID, f.ID); !fault.Is(err, fault.FileNotFound) {
		t.Errorf("the file: %v", err)
	}
	before := w.stored(t)
	sweep(before)
	release()
	release() // has no effect
	sweep(before)
	second()
	if _, err := w.SweepExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.stored(t); got != before-1 {
		t.Errorf("%d blobs are stored, want %d", got, before-1)
	}
}
