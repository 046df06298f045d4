// Package blobtest is the conformance suite for the backends of package blob, and
// has a store in memory for tests that need any.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/test/lane"
)

// Backend is a backend under test.
type Backend struct {
	// Open opens an empty store.
	Open func(t *testing.T) blob.Store
	// Boundary is the size of the parts that the backend splits blobs into.
	Boundary int
}

// Run checks that a backend behaves as blob.Store says.
func Run(t *testing.T, b Backend) {
	for _, part := range []struct {
		name string
		test func(*testing.T, Backend)
	}{
		{"what was written is read", testRoundTrip},
		{"random sizes and ranges", testRandomRanges},
		{"sealed blobs", testSealed},
		{"a blob is visible once committed", testVisibility},
		{"aborting leaves nothing", testAbort},
		{"a finished upload stays finished", testFinished},
		{"deleting", testDelete},
		{"lists are paged in order", testList},
		{"sweeping removes abandoned uploads", testSweep},
		{"ids are checked", testInvalidIDs},
		{"cancelled contexts", testCancelled},
		{"concurrent use", testConcurrent},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.test(t, b)
		})
	}
}

// farFuture is after everything that a test writes.
func farFuture() time.Time { return clock.Now().Add(24 * time.Hour) }

func put(t *testing.T, s blob.Store, content []byte) blob.ID {
	t.Helper()
	id := blob.NewID()
	if err := Put(t.Context(), s, id, content, 32<<10); err != nil {
		t.Fatal(err)
	}
	return id
}

func begin(t *testing.T, s blob.Store, id blob.ID, content []byte) blob.Upload {
	t.Helper()
	u, err := s.Begin(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteIn(u, content, 32<<10); err != nil {
		t.Fatal(err)
	}
	return u
}

func isMissing(t *testing.T, s blob.Store, id blob.ID) {
	t.Helper()
	if _, err := Get(t.Context(), s, id, 0, 1); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func testRoundTrip(t *testing.T, b Backend) {
	s := b.Open(t)
	for _, size := range []int{0, 1, b.Boundary - 1, b.Boundary, b.Boundary + 1, 2 * b.Boundary, 2*b.Boundary + 1} {
		content := random(size)
		id := put(t, s, content)
		for _, from := range []int{0, 1, size - 1, size, size + 1, b.Boundary - 1, b.Boundary, b.Boundary + 1} {
			if from < 0 {
				continue
			}
			for _, length := range []int64{0, 1, int64(b.Boundary), math.MaxInt64} {
				want := content[min(from, size):]
				want = want[:min(length, int64(len(want)))]
				got, err := Get(t.Context(), s, id, int64(from), length)
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%d bytes from %d on of %d: got %d bytes, %v", length, from, size, len(got), err)
				}
			}
		}
	}
}

func testRandomRanges(t *testing.T, b Backend) {
	s := b.Open(t)
	content := random(2*b.Boundary + 1000)
	lane.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, len(content)).Draw(t, "size")
		piece := rapid.IntRange(1, len(content)).Draw(t, "piece")
		if piece < 100 {
			size = min(size, 100_000) // tiny writes are slow
		}
		id := blob.NewID()
		if err := Put(context.Background(), s, id, content[:size], piece); err != nil {
			t.Fatal(err)
		}
		from := rapid.IntRange(0, size+10).Draw(t, "from")
		length := rapid.IntRange(0, size+10).Draw(t, "length")
		want := content[min(from, size):min(from+length, size)]
		if got, err := Get(context.Background(), s, id, int64(from), int64(length)); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %d bytes, want %d, %v", len(got), len(want), err)
		}
		if err := s.Delete(context.Background(), id); err != nil {
			t.Fatal(err)
		}
	})
}

func testSealed(t *testing.T, b Backend) {
	s := b.Open(t)
	sealed := blob.NewSealedStore(s, Keys("a key"))
	content := random(b.Boundary + 200_000)
	id := blob.NewID()
	u, err := sealed.Begin(t.Context(), "ws_a", id)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteIn(u, content, 7_777); err != nil {
		t.Fatal(err)
	}
	if err := u.Commit(); err != nil {
		t.Fatal(err)
	}
	if stored, err := Get(t.Context(), s, id, 0, math.MaxInt64); err != nil || bytes.Contains(stored, content[:32]) {
		t.Fatalf("the stored bytes are plain, or %v", err)
	}
	ref := blob.Ref{Workspace: "ws_a", ID: id, Size: int64(len(content))}
	for _, from := range []int{0, 1, 65_536, 100_000, b.Boundary, len(content) - 1, len(content)} {
		r, err := sealed.Open(t.Context(), ref, int64(from), math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, content[from:]) {
			t.Fatalf("from %d on: %d bytes, %v", from, len(got), err)
		}
	}
}

func testVisibility(t *testing.T, b Backend) {
	s, id, content := b.Open(t), blob.NewID(), random(b.Boundary+1)
	u := begin(t, s, id, content)
	isMissing(t, s, id)
	if page, err := s.List(t.Context(), paging.Request{Limit: 10}); err != nil || len(page.Items) != 0 {
		t.Errorf("before the commit the list has %v, %v", page.Items, err)
	}
	if err := u.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := Get(t.Context(), s, id, 0, math.MaxInt64); err != nil || !bytes.Equal(got, content) {
		t.Errorf("after the commit: %d bytes, %v", len(got), err)
	}
}

func testAbort(t *testing.T, b Backend) {
	s := b.Open(t)
	for _, size := range []int{0, 1, b.Boundary + 1} {
		id, content := blob.NewID(), random(size)
		u := begin(t, s, id, content)
		for range 2 {
			if err := u.Abort(); err != nil {
				t.Fatal(err)
			}
		}
		isMissing(t, s, id)
		if err := Put(t.Context(), s, id, content, b.Boundary); err != nil {
			t.Errorf("another upload under the id of an aborted one: %v", err)
		}
	}
	if n, err := s.Sweep(t.Context(), farFuture()); n != 0 || err != nil {
		t.Errorf("aborted uploads left %d, %v", n, err)
	}
}

func testFinished(t *testing.T, b Backend) {
	s, id := b.Open(t), blob.NewID()
	u := begin(t, s, id, []byte("abc"))
	if err := u.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write([]byte("d")); !errors.Is(err, blob.ErrFinished) {
		t.Errorf("a write after the commit: %v", err)
	}
	if err := u.Commit(); !errors.Is(err, blob.ErrFinished) {
		t.Errorf("a second commit: %v", err)
	}
	if err := u.Abort(); err != nil {
		t.Errorf("abort after the commit: %v", err)
	}
	if got, err := Get(t.Context(), s, id, 0, 10); err != nil || string(got) != "abc" {
		t.Errorf("got %q, %v", got, err)
	}
	aborted := begin(t, s, blob.NewID(), []byte("abc"))
	if err := aborted.Abort(); err != nil {
		t.Fatal(err)
	}
	if err := aborted.Commit(); !errors.Is(err, blob.ErrFinished) {
		t.Errorf("a commit after the abort: %v", err)
	}
}

func testDelete(t *testing.T, b Backend) {
	s := b.Open(t)
	kept, gone := put(t, s, []byte("kept")), put(t, s, random(b.Boundary+1))
	for range 2 {
		if err := s.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	isMissing(t, s, gone)
	if got, err := Get(t.Context(), s, kept, 0, 10); err != nil || string(got) != "kept" {
		t.Errorf("another blob: %q, %v", got, err)
	}
	if n, err := s.Sweep(t.Context(), farFuture()); n != 0 || err != nil {
		t.Errorf("deleting left %d, %v", n, err)
	}
}

func testList(t *testing.T, b Backend) {
	s := b.Open(t)
	var want []blob.ID
	sizes := map[blob.ID]int64{}
	for n := range 25 {
		id := put(t, s, random(n))
		want, sizes[id] = append(want, id), int64(n)
	}
	slices.Sort(want)
	for _, limit := range []int{1, 7, 24, 25, 26, 100_000} {
		var got []blob.ID
		for after := ""; ; {
			page, err := s.List(t.Context(), paging.Request{Limit: limit, After: after})
			if err != nil || len(page.Items) > limit {
				t.Fatalf("a page of %d has %d blobs, %v", limit, len(page.Items), err)
			}
			for _, info := range page.Items {
				got = append(got, info.ID)
				if info.Size != sizes[info.ID] {
					t.Errorf("%s has %d bytes, want %d", info.ID, info.Size, sizes[info.ID])
				}
				if age := clock.Now().Sub(info.Created); age < -time.Minute || age > time.Hour {
					t.Errorf("%s was created %v ago", info.ID, age)
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d have %v, want %v", limit, got, want)
		}
	}
}

func testSweep(t *testing.T, b Backend) {
	s := b.Open(t)
	kept := put(t, s, []byte("kept"))
	id := blob.NewID()
	u := begin(t, s, id, random(b.Boundary+1))
	if n, err := s.Sweep(t.Context(), clock.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Fatalf("swept %d recent uploads, %v", n, err)
	}
	for _, want := range []int{1, 0} {
		if n, err := s.Sweep(t.Context(), farFuture()); n != want || err != nil {
			t.Fatalf("swept %d uploads, want %d, %v", n, want, err)
		}
	}
	if err := u.Commit(); err == nil {
		t.Error("a swept upload was committed")
	}
	if err := u.Abort(); err != nil {
		t.Errorf("abort after the sweep: %v", err)
	}
	isMissing(t, s, id)
	if got, err := Get(t.Context(), s, kept, 0, 10); err != nil || string(got) != "kept" {
		t.Errorf("a committed blob: %q, %v", got, err)
	}
}

func testInvalidIDs(t *testing.T, b Backend) {
	s := b.Open(t)
	valid := string(blob.NewID())
	for _, id := range []string{
		"", ".", "..", "/etc/passwd", "../../../../../../etc/pass", valid[:25], valid + "a", valid[:25] + "A",
		valid[:25] + "/", valid[:25] + "1", valid[:25] + "\x00", valid[:24] + "..", "ab/" + valid[:23],
	} {
		_, beginErr := s.Begin(t.Context(), blob.ID(id))
		_, openErr := s.Open(t.Context(), blob.ID(id), 0, 1)
		for _, err := range []error{beginErr, openErr, s.Delete(t.Context(), blob.ID(id))} {
			if !errors.Is(err, blob.ErrInvalidID) {
				t.Errorf("%q: %v", id, err)
			}
		}
	}
}

func testCancelled(t *testing.T, b Backend) {
	s := b.Open(t)
	stored := put(t, s, random(3*b.Boundary))
	ended, end := context.WithCancel(t.Context())
	end()
	_, beginErr := s.Begin(ended, blob.NewID())
	_, openErr := s.Open(ended, stored, 0, 1)
	_, listErr := s.List(ended, paging.Request{Limit: 1})
	_, sweepErr := s.Sweep(ended, farFuture())
	for _, err := range []error{beginErr, openErr, listErr, sweepErr, s.Delete(ended, stored)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("with a cancelled context: %v", err)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	id := blob.NewID()
	u, err := s.Begin(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteIn(u, random(b.Boundary+1), b.Boundary); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(ctx, stored, 0, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled reader: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("close a cancelled reader: %v", err)
	}
	if err := u.Commit(); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled commit: %v", err)
	}
	if err := u.Abort(); err != nil {
		t.Errorf("abort after the end of the context: %v", err)
	}
	isMissing(t, s, id)
	if n, err := s.Sweep(t.Context(), farFuture()); n != 0 || err != nil {
		t.Errorf("an aborted upload left %d, %v", n, err)
	}
}

func testConcurrent(t *testing.T, b Backend) {
	s := b.Open(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			id, content := blob.NewID(), random(b.Boundary+100)
			if err := Put(t.Context(), s, id, content, 10_000); err != nil {
				t.Error(err)
				return
			}
			got, err := Get(t.Context(), s, id, 50, math.MaxInt64)
			if err != nil || !bytes.Equal(got, content[50:]) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if err := s.Delete(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
