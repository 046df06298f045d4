package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/failpoint"
	"github.com/stepmill/stepmill/internal/file"
)

// FilesTarget is where an import stores the bytes of files.
type FilesTarget struct {
	Place string // as it is recorded
	Blobs blob.Store
}

type fileImport struct {
	FilesTarget
	blobs   int64     // in the archive
	rows    int64     // that refer to them
	written []blob.ID // by this import
}

// load imports the blobs of an archive. Nothing refers to them yet.
func (f *fileImport) load(ctx context.Context, installation string, from *archive.Reader) (err error) {
	if _, err := from.Next(); err != nil || f.Blobs == nil {
		return err
	}
	if _, err := file.CheckPlace(ctx, f.Blobs, installation); err != nil {
		return err
	}
	var current *blobImport
	defer func() {
		if current != nil {
			err = errors.Join(err, current.abort())
		}
	}()
	for {
		row, err := from.Row()
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		var p piece
		if !end {
			if p, err = newPiece(row); err != nil {
				return err
			}
		}
		if current != nil && (end || current.id != p.id) {
			if err := f.finish(current); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
		if current, err = f.continueWith(ctx, current, p); err == nil {
			err = current.write(p)
		}
		if err != nil {
			return fmt.Errorf("import the bytes of a file: %w", err)
		}
	}
}

// continueWith returns the blob that a piece belongs to: the current one or a new one.
func (f *fileImport) continueWith(ctx context.Context, current *blobImport, p piece) (*blobImport, error) {
	switch {
	case current != nil && current.id == p.id:
		return current, nil
	case current != nil && p.id < current.id:
		return current, fmt.Errorf("%w: blob %s is not in order", archive.ErrDamaged, p.id)
	}
	f.blobs++
	return beginBlob(ctx, f.Blobs, p.id)
}

func (f *fileImport) finish(current *blobImport) error {
	written := current.upload != nil
	if err := errors.Join(current.finish(), current.abort()); err != nil {
		return fmt.Errorf("import the bytes of a file: %w", err)
	}
	if written {
		f.written = append(f.written, current.id)
		failpoint.Hit(failpoint.MidImport, fileBytes)
	}
	return nil
}

// check compares the number of blobs with that of the rows that refer to them.
func (f *fileImport) check() error {
	if f.Blobs != nil && f.blobs != f.rows {
		return fmt.Errorf("%w: it has the bytes of %d files, and needs those of %d", archive.ErrDamaged, f.blobs, f.rows)
	}
	return nil
}

func (f *fileImport) record(c database.Conn) error {
	if f.Blobs == nil {
		return nil
	}
	return c.Do(`INSERT INTO files_place (id, place) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET place = excluded.place`, f.Place)
}

// rollback deletes the blobs that the import has written, but none that existed before.
func (f *fileImport) rollback(ctx context.Context) error {
	for _, id := range f.written {
		if err := f.Blobs.Delete(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

type piece struct {
	id     blob.ID
	number int64
	bytes  []byte
}

func newPiece(row []any) (piece, error) {
	id, hasID := row[0].(string)
	number, hasNumber := row[1].(int64)
	content, hasBytes := row[2].([]byte)
	p := piece{blob.ID(id), number, content}
	if !hasID || !hasNumber || !hasBytes || p.id.Check() != nil {
		return piece{}, fmt.Errorf("%w: the bytes of a file are not complete", archive.ErrDamaged)
	}
	return p, nil
}

// blobImport writes a blob, or compares it with one that exists: ids are random and blobs
// never change, so an interrupted import or a bucket that both installations use has it.
type blobImport struct {
	id       blob.ID
	next     int64         // the number of the next piece
	upload   blob.Upload   // nil: it exists
	existing io.ReadCloser // nil: it does not
	buffer   []byte
}

func beginBlob(ctx context.Context, blobs blob.Store, id blob.ID) (*blobImport, error) {
	b := &blobImport{id: id}
	var err error
	if b.existing, err = blobs.Open(ctx, id, 0, blob.MaxSize); !errors.Is(err, blob.ErrNotFound) {
		return b, err
	}
	b.existing = nil
	b.upload, err = blobs.Begin(ctx, id)
	if errors.Is(err, blob.ErrExists) { // left by an import that was interrupted
		if _, err = blobs.Sweep(ctx, clock.Now()); err == nil {
			b.upload, err = blobs.Begin(ctx, id)
		}
	}
	return b, err
}

func (b *blobImport) write(p piece) error {
	if p.number != b.next {
		return fmt.Errorf("%w: piece %d of blob %s is missing", archive.ErrDamaged, b.next, b.id)
	}
	b.next++
	if b.upload != nil {
		_, err := b.upload.Write(p.bytes)
		return err
	}
	b.buffer = append(b.buffer[:0], make([]byte, len(p.bytes))...)
	_, err := io.ReadFull(b.existing, b.buffer)
	if err == nil && bytes.Equal(b.buffer, p.bytes) {
		return nil
	}
	return b.differs(err)
}

// differs explains why an existing blob cannot be used.
func (b *blobImport) differs(err error) error {
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return fmt.Errorf("the file storage already has other bytes under the id %s: remove what an interrupted import has left there, or name another place", b.id)
}

func (b *blobImport) finish() error {
	if b.upload != nil {
		return b.upload.Commit()
	}
	if n, err := io.ReadFull(b.existing, make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return b.differs(err)
	}
	return nil
}

// abort discards the blob unless it is complete. After the first time it does nothing.
func (b *blobImport) abort() (err error) {
	if b.upload != nil {
		err = b.upload.Abort()
	}
	if b.existing != nil {
		err = b.existing.Close()
	}
	b.upload, b.existing = nil, nil
	return err
}
