package blob_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/blob/blobtest"
	"github.com/stepmill/stepmill/internal/vault"
	"github.com/stepmill/stepmill/test/lane"
)

// The sealed format, as the decision record states it.
const (
	headerSize = 36
	segment    = 64 << 10
	tag        = 16
)

func random(n int) []byte {
	content := make([]byte, n)
	_, _ = rand.Read(content)
	return content
}

// sealIn stores a blob of the workspace ws_a, written in pieces.
func sealIn(s *blob.SealedStore, content []byte, piece int) (blob.Ref, error) {
	ref := blob.Ref{Workspace: "ws_a", ID: blob.NewID(), Size: int64(len(content))}
	u, err := s.Begin(context.Background(), ref.Workspace, ref.ID)
	if err != nil {
		return ref, err
	}
	if err := blobtest.WriteIn(u, content, piece); err != nil {
		return ref, errors.Join(err, u.Abort())
	}
	if want := (blob.Digest{Size: ref.Size, SHA256: sha256.Sum256(content)}); u.Digest() != want {
		return ref, errors.New("the digest is wrong")
	}
	return ref, u.Commit()
}

func seal(t *testing.T, s *blob.SealedStore, content []byte) blob.Ref {
	t.Helper()
	ref, err := sealIn(s, content, len(content))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func read(s *blob.SealedStore, ref blob.Ref, offset, length int64) ([]byte, error) {
	r, err := s.Open(context.Background(), ref, offset, length)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

func TestSealedRoundTrip(t *testing.T) {
	t.Parallel()
	store := blobtest.NewMemory()
	s := blob.NewSealedStore(store, blobtest.Keys("a"))
	for _, size := range []int{0, 1, segment - 1, segment, segment + 1, 2*segment - 1, 2 * segment, 2*segment + 1} {
		content := random(size)
		for _, piece := range []int{1000, segment - 1, segment, segment + 1, 10 * segment} {
			ref, err := sealIn(s, content, piece)
			if err != nil {
				t.Fatal(err)
			}
			segments := max(1, (size+segment-1)/segment)
			if got, want := len(store.Bytes(ref.ID)), headerSize+size+tag*segments; got != want {
				t.Errorf("%d bytes take %d sealed bytes, want %d", size, got, want)
			}
			for _, offset := range []int{0, 1, segment - 1, segment, segment + 1, size - 1, size} {
				if offset < 0 || offset > size {
					continue
				}
				for _, length := range []int{0, 1, segment, size} {
					want := content[offset:min(offset+length, size)]
					got, err := read(s, ref, int64(offset), int64(length))
					if err != nil || !bytes.Equal(got, want) {
						t.Fatalf("%d bytes from %d on of %d: got %d, %v", length, offset, size, len(got), err)
					}
				}
			}
		}
	}
}

func TestSealedRandomSizesAndRanges(t *testing.T) {
	t.Parallel()
	s := blob.NewSealedStore(blobtest.NewMemory(), blobtest.Keys("a"))
	content := random(5 * segment)
	nearBoundary := rapid.Custom(func(t *rapid.T) int {
		return rapid.IntRange(0, 4).Draw(t, "segment")*segment + rapid.IntRange(0, 2).Draw(t, "more")
	})
	anySize := rapid.OneOf(rapid.IntRange(0, len(content)), nearBoundary)
	lane.Check(t, func(t *rapid.T) {
		size := anySize.Draw(t, "size")
		ref, err := sealIn(s, content[:size], rapid.IntRange(100, 2*segment).Draw(t, "piece"))
		if err != nil {
			t.Fatal(err)
		}
		offset := min(size, anySize.Draw(t, "offset"))
		length := anySize.Draw(t, "length")
		r, err := s.Open(context.Background(), ref, int64(offset), int64(length))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := iotest.TestReader(r, content[offset:min(size, offset+length)]); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSealedRangesOutsideTheBlob(t *testing.T) {
	t.Parallel()
	s := blob.NewSealedStore(blobtest.NewMemory(), blobtest.Keys("a"))
	ref := seal(t, s, random(100))
	for _, at := range [][2]int64{{-1, 1}, {0, -1}, {101, 1}} {
		if _, err := s.Open(t.Context(), ref, at[0], at[1]); err == nil {
			t.Errorf("opened %d bytes from %d on of 100", at[1], at[0])
		}
	}
}

func TestSealedUploadEnds(t *testing.T) {
	t.Parallel()
	store := blobtest.NewMemory()
	s, id := blob.NewSealedStore(store, blobtest.Keys("a")), blob.NewID()
	u, err := s.Begin(t.Context(), "ws_a", id)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write([]byte("x")); !errors.Is(err, blob.ErrFinished) {
		t.Errorf("a write after the abort: %v", err)
	}
	if err := u.Commit(); !errors.Is(err, blob.ErrFinished) {
		t.Errorf("a commit after the abort: %v", err)
	}
	if _, err := s.Open(t.Context(), blob.Ref{Workspace: "ws_a", ID: id, Size: 1}, 0, 1); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("after the abort: %v", err)
	}
	if _, err := s.Begin(t.Context(), "ws_a", "../x"); !errors.Is(err, blob.ErrInvalidID) {
		t.Errorf("an invalid id: %v", err)
	}
}

// A cut-off write, as of a full disk, fails the upload for good.
func TestSealedUploadFailsOnce(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	s := blob.NewSealedStore(failingStore{Memory: blobtest.NewMemory(), after: segment, err: broken}, blobtest.Keys("a"))
	u, err := s.Begin(t.Context(), "ws_a", blob.NewID())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := u.Write(random(3 * segment)); !errors.Is(err, broken) || n > segment {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
	if _, err := u.Write([]byte("x")); !errors.Is(err, broken) {
		t.Errorf("the next write: %v", err)
	}
	if err := u.Commit(); !errors.Is(err, broken) {
		t.Errorf("the commit: %v", err)
	}
}

// failingStore fails uploads beyond a number of bytes.
type failingStore struct {
	*blobtest.Memory
	after int
	err   error
}

func (s failingStore) Begin(ctx context.Context, id blob.ID) (blob.Upload, error) {
	u, err := s.Memory.Begin(ctx, id)
	return &failingUpload{Upload: u, rest: s.after, err: s.err}, err
}

type failingUpload struct {
	blob.Upload
	rest int
	err  error
}

func (u *failingUpload) Write(p []byte) (int, error) {
	if u.rest -= len(p); u.rest < 0 {
		return 0, u.err
	}
	return u.Upload.Write(p)
}

type dataKeys map[string][]byte

func (k dataKeys) DataKey(_ context.Context, workspaceID string) ([]byte, error) {
	return k[workspaceID], nil
}

func newVault(t *testing.T, keys dataKeys) *vault.Vault {
	t.Helper()
	v, err := vault.New(random(32), keys)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestBlobsStayReadableWhenTheMasterKeyIsRotated(t *testing.T) {
	t.Parallel()
	store, content, before, after := blobtest.NewMemory(), random(segment+1), dataKeys{}, dataKeys{}
	v := newVault(t, before)
	before["ws_a"] = v.NewDataKey("ws_a")
	ref := seal(t, blob.NewSealedStore(store, v), content)

	next := newVault(t, after)
	rewrapped, err := v.Rewrap("ws_a", before["ws_a"], next)
	if err != nil {
		t.Fatal(err)
	}
	after["ws_a"] = rewrapped
	got, err := read(blob.NewSealedStore(store, next), ref, 0, ref.Size)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
