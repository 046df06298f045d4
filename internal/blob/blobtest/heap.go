package blobtest

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/stepmill/stepmill/internal/blob"
)

// heapWatch is a writer that notes how far the heap grows while bytes pass.
type heapWatch struct {
	sample []metrics.Sample
	base   uint64
	growth uint64
}

func watchHeap() *heapWatch {
	runtime.GC()
	w := &heapWatch{sample: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
	w.base = w.heap()
	return w
}

func (w *heapWatch) heap() uint64 {
	metrics.Read(w.sample)
	return w.sample[0].Value.Uint64()
}

// Write implements io.Writer.
func (w *heapWatch) Write(p []byte) (int, error) {
	if now := w.heap(); now > w.base {
		w.growth = max(w.growth, now-w.base)
	}
	return len(p), nil
}

// CheckMemory streams a sealed blob into a store and out again, and checks that the
// heap does not grow by more than most, which includes garbage. It must not run in
// parallel with other tests. If the heap grows by more, it tries again: a collection that
// runs late only adds to a measurement.
func CheckMemory(t *testing.T, store blob.Store, size, most int64) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		growth := stream(t, store, size)
		t.Logf("%d MiB in and out: the heap grew by up to %d KiB", size>>20, growth>>10)
		if growth <= uint64(most) {
			return
		}
		if attempt == 3 {
			t.Fatalf("the heap grew by %d bytes, more than %d", growth, most)
		}
	}
}

// stream streams a sealed blob into a store and out again, and returns how much the heap
// grew.
func stream(t *testing.T, store blob.Store, size int64) (growth uint64) {
	t.Helper()
	s := blob.NewSealedStore(store, Keys("a"))
	ref := blob.Ref{Workspace: "ws_a", ID: blob.NewID(), Size: size}
	sent, received, heap := sha256.New(), sha256.New(), watchHeap()

	u, err := s.Begin(t.Context(), ref.Workspace, ref.ID)
	if err != nil {
		t.Fatal(err)
	}
	source := io.LimitReader(rand.NewChaCha8([32]byte{1}), size)
	if _, err := io.Copy(u, io.TeeReader(source, io.MultiWriter(sent, heap))); err != nil {
		t.Fatal(err)
	}
	digest := u.Digest()
	if err := u.Commit(); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), ref, 0, size)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.Copy(io.MultiWriter(received, heap), r); err != nil {
		t.Fatal(err)
	}
	want := sent.Sum(nil)
	if digest.Size != size || !bytes.Equal(digest.SHA256[:], want) || !bytes.Equal(received.Sum(nil), want) {
		t.Error("the bytes differ")
	}
	return heap.growth
}
