package backup

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stepmill/stepmill/internal/blob"
)

// ErrSize means that a blob does not have the size that it should have.
var ErrSize = errors.New("backup: the blob does not have the expected size")

// Writer writes a backup: the database, then blobs in the order of their ids.
type Writer struct {
	tar  *tar.Writer
	sum  checksum
	made time.Time
	last blob.ID
}

// NewWriter returns a Writer. The time is that of the backup.
func NewWriter(to io.Writer, made time.Time) *Writer {
	return &Writer{tar: tar.NewWriter(to), sum: newChecksum(), made: made.Truncate(time.Second)}
}

// Database writes the database: what write writes, which must have the given size.
func (w *Writer) Database(size int64, write func(io.Writer) error) error {
	return w.entry(Entry{Size: size}, write)
}

// Blob writes a blob, all that is read. It returns ErrSize unless it has the given size.
func (w *Writer) Blob(id blob.ID, size int64, from io.Reader) error {
	if err := id.Check(); err != nil {
		return err
	}
	if id <= w.last {
		return fmt.Errorf("backup: blob %s does not come after %s", id, w.last)
	}
	w.last = id
	return w.entry(Entry{Blob: id, Size: size}, func(to io.Writer) error {
		n, err := io.Copy(to, from)
		if errors.Is(err, tar.ErrWriteTooLong) || err == nil && n < size {
			return ErrSize
		}
		return err
	})
}

func (w *Writer) entry(e Entry, write func(io.Writer) error) error {
	if err := w.header(e.name(), e.Size); err != nil {
		return err
	}
	w.sum.begin(e)
	if err := write(io.MultiWriter(w.tar, w.sum)); err != nil {
		return err
	}
	return w.tar.Flush() // an error if it is too short
}

func (w *Writer) header(name string, size int64) error {
	return w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: w.made})
}

// Close writes the checksum. Without it the backup is incomplete.
func (w *Writer) Close() error {
	line := w.sum.line()
	if err := w.header(checksumName, int64(len(line))); err != nil {
		return err
	}
	if _, err := w.tar.Write(line); err != nil {
		return err
	}
	return w.tar.Close()
}
