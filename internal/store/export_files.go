package store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/database"
)

const (
	// fileBytes is the section of an archive with the sealed bytes of files: blobs in the
	// order of their ids, in pieces of at most filePiece bytes.
	fileBytes = "file_bytes"
	filePiece = 256 << 10
	// fileBytesAt is the number of tables before that section: the installation.
	fileBytesAt = 1
)

func fileBytesTable() archive.Table {
	return archive.Table{Name: fileBytes, Columns: []archive.Column{
		{Name: "blob_id", Kind: archive.Text}, {Name: "number", Kind: archive.Int}, {Name: "bytes", Kind: archive.Bytes},
	}}
}

func exportBlobs(ctx context.Context, c database.Conn, blobs blob.Store, to *archive.Writer) error {
	if err := to.Begin(archive.Section{Table: fileBytes}); err != nil || blobs == nil {
		return err
	}
	buffer := make([]byte, filePiece)
	for after := ""; ; {
		refs, err := database.List(c, `SELECT id, size FROM file_blobs WHERE id > $1 ORDER BY id LIMIT $2`, []any{after, exportPage}, func(r database.Row) (ref blob.Ref, err error) {
			err = r.Scan((*string)(&ref.ID), &ref.Size)
			return ref, err
		})
		if err != nil {
			return err
		}
		for _, ref := range refs {
			if err := exportBlob(ctx, blobs, ref, buffer, to); err != nil {
				return fmt.Errorf("blob %s: %w", ref.ID, err)
			}
			after = string(ref.ID)
		}
		if len(refs) < exportPage {
			return nil
		}
	}
}

func exportBlob(ctx context.Context, blobs blob.Store, ref blob.Ref, buffer []byte, to *archive.Writer) (err error) {
	rest := blob.SealedSize(ref.Size)
	source, err := blobs.Open(ctx, ref.ID, 0, rest+1) // a byte more, to notice if there is one
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	for number := int64(0); ; number++ {
		n, err := io.ReadFull(source, buffer)
		if rest -= int64(n); errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if err := to.Row([]any{string(ref.ID), number, buffer[:n]}); err != nil {
			return err
		}
	}
	if rest != 0 {
		return blob.ErrCorrupt
	}
	return nil
}

// RecordedFilesPlace returns where the bytes of files are; empty if that is not recorded.
func (s Files) RecordedFilesPlace(ctx context.Context) (string, error) {
	return readValue[string](ctx, s.db, `SELECT place FROM files_place WHERE id = 1`)
}
