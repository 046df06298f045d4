package blobtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/stepmill/stepmill/internal/blob"
)

func random(n int) []byte {
	content := make([]byte, n)
	_, _ = rand.Read(content)
	return content
}

// Put stores a blob, written in pieces of the given size.
func Put(ctx context.Context, s blob.Store, id blob.ID, content []byte, piece int) error {
	u, err := s.Begin(ctx, id)
	if err != nil {
		return err
	}
	if err := WriteIn(u, content, piece); err != nil {
		return errors.Join(err, u.Abort())
	}
	return errors.Join(u.Commit(), u.Abort())
}

// WriteIn writes content in pieces of the given size.
func WriteIn(w io.Writer, content []byte, piece int) error {
	for part := range slices.Chunk(content, max(1, piece)) {
		if n, err := w.Write(part); err != nil || n != len(part) {
			return errors.Join(err, fmt.Errorf("wrote %d of %d bytes", n, len(part)))
		}
	}
	return nil
}

// Get reads a range of a blob.
func Get(ctx context.Context, s blob.Store, id blob.ID, offset, length int64) ([]byte, error) {
	r, err := s.Open(ctx, id, offset, length)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}
