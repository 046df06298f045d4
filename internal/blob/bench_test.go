package blob_test

import (
	"context"
	"io"
	"testing"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/blob/blobtest"
)

// BenchmarkSeal and BenchmarkOpen measure the sealing alone, without storage.
func BenchmarkSeal(b *testing.B) {
	s := blob.NewSealedStore(discard{Memory: blobtest.NewMemory()}, blobtest.Keys("a"))
	u, err := s.Begin(b.Context(), "ws_a", blob.NewID())
	if err != nil {
		b.Fatal(err)
	}
	content := random(1 << 20)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if _, err := u.Write(content); err != nil {
			b.Fatal(err)
		}
	}
}

// discard is a store whose uploads go nowhere.
type discard struct{ *blobtest.Memory }

func (discard) Begin(context.Context, blob.ID) (blob.Upload, error) { return nowhere{}, nil }

type nowhere struct{ blob.Upload }

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

func BenchmarkOpen(b *testing.B) {
	s := blob.NewSealedStore(blobtest.NewMemory(), blobtest.Keys("a"))
	content := random(16 << 20)
	ref, err := sealIn(s, content, len(content))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		r, err := s.Open(b.Context(), ref, 0, ref.Size)
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, r); err != nil || n != ref.Size {
			b.Fatal(n, err)
		}
	}
}
