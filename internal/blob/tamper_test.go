package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/blob/blobtest"
	"github.com/stepmill/stepmill/test/lane"
)

// readForged reads a forged blob from an offset on to its end. It must fail, and
// every byte that it returns before must be an original one.
func readForged(t require, s *blob.SealedStore, ref blob.Ref, content []byte, offset int) {
	t.Helper()
	got, err := read(s, ref, int64(offset), ref.Size)
	if !errors.Is(err, blob.ErrCorrupt) {
		t.Fatalf("from %d on: got %d bytes, %v, want ErrCorrupt", offset, len(got), err)
	}
	if !bytes.HasPrefix(content[offset:], got) {
		t.Fatalf("from %d on: returned %d forged bytes", offset, len(got))
	}
}

// require is implemented by testing.T and rapid.T.
type require interface {
	Helper()
	Fatalf(format string, args ...any)
}

// segmentAt returns the sealed bytes of a segment.
func segmentAt(sealed []byte, n int) []byte {
	from := headerSize + n*(segment+tag)
	return sealed[from:min(from+segment+tag, len(sealed))]
}

func TestForgedBlobsAreDetected(t *testing.T) {
	t.Parallel()
	const size = 3*segment + 100
	content := random(size)
	for name, forge := range map[string]func(sealed, other []byte) []byte{
		"truncated to nothing":          func(s, _ []byte) []byte { return nil },
		"truncated in the header":       func(s, _ []byte) []byte { return s[:headerSize-1] },
		"truncated after the header":    func(s, _ []byte) []byte { return s[:headerSize] },
		"truncated by a byte":           func(s, _ []byte) []byte { return s[:len(s)-1] },
		"without the last segment":      func(s, _ []byte) []byte { return s[:headerSize+3*(segment+tag)] },
		"with a byte appended":          func(s, _ []byte) []byte { return append(s, 0) },
		"with a segment appended":       func(s, _ []byte) []byte { return append(s, segmentAt(s, 3)...) },
		"with two segments swapped":     func(s, _ []byte) []byte { return swap(s, 0, 1) },
		"with two others swapped":       func(s, _ []byte) []byte { return swap(s, 0, 2) },
		"with a segment repeated":       func(s, _ []byte) []byte { copy(segmentAt(s, 1), segmentAt(s, 0)); return s },
		"with a segment removed":        func(s, _ []byte) []byte { return slices.Delete(s, headerSize, headerSize+segment+tag) },
		"with another blob's segment":   func(s, o []byte) []byte { copy(segmentAt(s, 1), segmentAt(o, 1)); return s },
		"with another blob's header":    func(s, o []byte) []byte { copy(s, o[:headerSize]); return s },
		"replaced by another blob":      func(_, o []byte) []byte { return o },
		"with another version":          func(s, _ []byte) []byte { s[3]++; return s },
		"followed by another whole one": func(s, o []byte) []byte { return append(s, o...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := blobtest.NewMemory()
			s := blob.NewSealedStore(store, blobtest.Keys("a"))
			ref, other := seal(t, s, content), seal(t, s, content)
			store.Put(ref.ID, forge(store.Bytes(ref.ID), store.Bytes(other.ID)))
			readForged(t, s, ref, content, 0)
		})
	}
}

func swap(sealed []byte, a, b int) []byte {
	first := bytes.Clone(segmentAt(sealed, a))
	copy(segmentAt(sealed, a), segmentAt(sealed, b))
	copy(segmentAt(sealed, b), first)
	return sealed
}

// A change of the end is also noticed by a reader that starts after it.
func TestForgedEndIsDetectedFromEveryOffset(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, segment, segment + 1, 2 * segment} {
		content := random(size)
		for name, forge := range map[string]func([]byte) []byte{
			"a byte appended":  func(s []byte) []byte { return append(s, 0) },
			"a byte removed":   func(s []byte) []byte { return s[:len(s)-1] },
			"all of it gone":   func([]byte) []byte { return nil },
			"a segment's tail": func(s []byte) []byte { return append(s, s[len(s)-tag:]...) },
		} {
			store := blobtest.NewMemory()
			s := blob.NewSealedStore(store, blobtest.Keys("a"))
			ref := seal(t, s, content)
			store.Put(ref.ID, forge(store.Bytes(ref.ID)))
			for _, offset := range []int{0, 1, size / 2, segment, size - 1, size} {
				if offset >= 0 && offset <= size {
					t.Run(name, func(t *testing.T) { readForged(t, s, ref, content, offset) })
				}
			}
		}
	}
}

func TestBlobIsBoundToWorkspaceIDSizeAndKey(t *testing.T) {
	t.Parallel()
	store := blobtest.NewMemory()
	s := blob.NewSealedStore(store, blobtest.Keys("a"))
	ref := seal(t, s, random(segment))
	elsewhere := blob.NewID()
	store.Put(elsewhere, store.Bytes(ref.ID))
	for name, tc := range map[string]struct {
		s   *blob.SealedStore
		ref blob.Ref
	}{
		"another workspace": {s, blob.Ref{Workspace: "ws_b", ID: ref.ID, Size: ref.Size}},
		"another id":        {s, blob.Ref{Workspace: "ws_a", ID: elsewhere, Size: ref.Size}},
		"a smaller size":    {s, blob.Ref{Workspace: "ws_a", ID: ref.ID, Size: ref.Size - 1}},
		"a larger size":     {s, blob.Ref{Workspace: "ws_a", ID: ref.ID, Size: ref.Size + 1}},
		"no size":           {s, blob.Ref{Workspace: "ws_a", ID: ref.ID}},
		"another key":       {blob.NewSealedStore(store, blobtest.Keys("b")), ref},
		// The key is the same although the workspace is not: only the additional
		// data differs.
		"another workspace with the same key": {
			blob.NewSealedStore(store, sameKey{}), blob.Ref{Workspace: "ws_b", ID: ref.ID, Size: ref.Size},
		},
	} {
		if got, err := read(tc.s, tc.ref, 0, tc.ref.Size); !errors.Is(err, blob.ErrCorrupt) || len(got) > 0 {
			t.Errorf("%s: got %d bytes, %v", name, len(got), err)
		}
	}
	if _, err := read(blob.NewSealedStore(store, sameKey{}), ref, 0, ref.Size); err != nil {
		t.Errorf("with the key of its workspace: %v", err)
	}
}

// sameKey derives the key of ws_a for every workspace.
type sameKey struct{}

func (sameKey) DeriveKey(ctx context.Context, _, purpose string, salt []byte) ([]byte, error) {
	return blobtest.Keys("a").DeriveKey(ctx, "ws_a", purpose, salt)
}

// Every flipped bit is noticed by a reader of the segment that it is in, and a bit
// of the header by every reader.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	content := random(2*segment + 1000)
	store := blobtest.NewMemory()
	s := blob.NewSealedStore(store, blobtest.Keys("a"))
	ref := seal(t, s, content)
	sealed := store.Bytes(ref.ID)
	lane.Check(t, func(t *rapid.T) {
		at := rapid.OneOf(rapid.IntRange(0, headerSize-1), rapid.IntRange(0, len(sealed)-1)).Draw(t, "byte")
		forged := bytes.Clone(sealed)
		forged[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		store.Put(ref.ID, forged)
		changed := max(0, at-headerSize) / (segment + tag)
		offset := rapid.IntRange(0, len(content)).Draw(t, "offset")
		if at < headerSize || offset < (changed+1)*segment {
			readForged(t, s, ref, content, offset)
			return
		}
		if got, err := read(s, ref, int64(offset), ref.Size); err != nil || !bytes.Equal(got, content[offset:]) {
			t.Fatalf("a segment before the range was changed: %d bytes, %v", len(got), err)
		}
	})
}

// FuzzSealedReader reads a blob of which some bytes were overwritten, cut off and
// appended. Only the original bytes may be returned, and only the original blob may
// be read to its end.
func FuzzSealedReader(f *testing.F) {
	memory := blobtest.NewMemory()
	content := bytes.Repeat([]byte("0123456789abcdef"), segment/16+2)
	ref, err := sealIn(blob.NewSealedStore(memory, blobtest.Keys("a")), content, segment)
	if err != nil {
		f.Fatal(err)
	}
	original := memory.Bytes(ref.ID)
	all := uint32(len(original))
	f.Add(uint32(0), []byte{}, all, []byte{}, int64(0), ref.Size)
	f.Add(uint32(0), []byte{}, all, []byte{}, int64(segment-1), int64(2))
	f.Add(uint32(headerSize), []byte{1, 2, 3}, all, []byte{}, int64(0), int64(10))
	f.Add(uint32(0), []byte{}, all-1, []byte{}, int64(segment), int64(10))
	f.Add(uint32(0), []byte{}, all, []byte{0}, ref.Size, int64(0))
	f.Add(uint32(0), []byte("SMB\x02"), all, []byte{}, int64(0), int64(1))
	f.Add(uint32(0), []byte{}, uint32(0), original[:200], int64(0), int64(1))
	f.Fuzz(func(t *testing.T, at uint32, patch []byte, keep uint32, tail []byte, offset, length int64) {
		sealed := bytes.Clone(original[:min(keep, all)])
		copy(sealed[min(int(at), len(sealed)):], patch)
		sealed = append(sealed, tail...)
		store := blobtest.NewMemory()
		store.Put(ref.ID, sealed)
		r, err := blob.NewSealedStore(store, blobtest.Keys("a")).Open(t.Context(), ref, offset, length)
		if err != nil {
			return
		}
		got, err := io.ReadAll(r)
		want := content[offset:]
		want = want[:min(length, int64(len(want)))]
		intact := bytes.Equal(sealed, original)
		switch {
		case !bytes.HasPrefix(want, got):
			t.Fatalf("returned %d forged bytes", len(got))
		case err == nil && len(got) < len(want):
			t.Fatalf("ended after %d of %d bytes without an error", len(got), len(want))
		case err == nil && !intact && offset < segment && int64(len(want)) == ref.Size-offset:
			t.Fatal("read a forged blob to its end")
		case err != nil && intact:
			t.Fatal(err)
		}
	})
}
