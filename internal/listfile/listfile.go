// Package listfile defines the format of list files: lists that are too large for the
// output of a step, stored as a file with one JSON value per line. It owns the format,
// not the storage of files.
package listfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/stepmill/stepmill/internal/expr"
)

// Type is the media type of a list file.
const Type = "application/x-ndjson"

const (
	// MaxFirst is how many items a reference to a list file shows, and maxFirstBytes
	// how many bytes they have at most.
	MaxFirst      = 100
	maxFirstBytes = 32 << 10
	// MaxReference is more than a reference to a list file has as JSON.
	MaxReference = maxFirstBytes + 4<<10
	// maxItem is the most bytes of an item. No plan allows larger values.
	maxItem = 4 << 20
	// bufferSize is the size of the buffer for reading and writing.
	bufferSize = 64 << 10
)

// Writer writes a list file.
type Writer struct {
	w     *bufio.Writer
	list  *expr.FileList
	first int // bytes of the first items
	full  bool
}

// NewWriter returns a writer that keeps the description of the list up to date.
func NewWriter(w io.Writer, list *expr.FileList) *Writer {
	list.First = []any{}
	return &Writer{w: bufio.NewWriterSize(w, bufferSize), list: list}
}

// Add adds an item, given as JSON on one line.
func (w *Writer) Add(item []byte) error {
	if len(item) > maxItem {
		return fmt.Errorf("an item of a list has %d bytes; the limit is %d", len(item), maxItem)
	}
	w.list.Count++
	w.first += len(item)
	w.full = w.full || w.list.Count > MaxFirst || w.first > maxFirstBytes
	if !w.full {
		value, err := expr.FromJSON(item)
		if err != nil {
			return err
		}
		w.list.First = append(w.list.First, value)
	}
	if _, err := w.w.Write(item); err != nil {
		return err
	}
	return w.w.WriteByte('\n')
}

// Flush writes what is buffered.
func (w *Writer) Flush() error { return w.w.Flush() }

// Reader reads the items of a list file in order.
type Reader struct {
	r    *bufio.Reader
	line []byte
}

// NewReader returns a reader.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, bufferSize)} }

// Next returns the next item as JSON, which is valid until the next call. The error is
// io.EOF after the last one.
func (r *Reader) Next() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.r.ReadSlice('\n')
		switch {
		case err == nil && len(r.line) == 0:
			return part[:len(part)-1], nil
		case err == io.EOF && len(r.line)+len(part) > 0:
			return nil, io.ErrUnexpectedEOF
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(r.line)+len(part) > maxItem+1:
			return nil, fmt.Errorf("an item of a list file has more than %d bytes", maxItem)
		}
		if r.line = append(r.line, part...); err == nil {
			return r.line[:len(r.line)-1], nil
		}
	}
}
