package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/stepmill/stepmill/internal/blob"
)

// Reader reads a backup. What it returns is verified only once Next has returned
// io.EOF.
type Reader struct {
	tar     *tar.Reader
	sum     checksum
	started bool
	last    blob.ID
}

// NewReader returns a Reader.
func NewReader(from io.Reader) *Reader {
	return &Reader{tar: tar.NewReader(from), sum: newChecksum()}
}

// Next advances to the next entry and skips what was not read of the current one. The
// first entry is the database. It returns io.EOF after the last entry if the file is
// complete and unchanged.
func (r *Reader) Next() (Entry, error) {
	if r.started {
		if _, err := io.Copy(io.Discard, r); err != nil {
			return Entry{}, err
		}
	}
	h, err := r.tar.Next()
	if err != nil {
		return Entry{}, classify(err)
	}
	if !plain(h) {
		return Entry{}, damaged("the entry %q is not a plain file", h.Name)
	}
	if r.started && h.Name == checksumName {
		return Entry{}, r.checkEnd()
	}
	e, err := r.parse(h)
	if err != nil {
		return Entry{}, err
	}
	r.started, r.last = true, e.Blob
	r.sum.begin(e)
	return e, nil
}

// plain reports whether an entry is a file as Writer writes it: no link, no device, and
// not sparse, so that what is read is as long as what is stored.
func plain(h *tar.Header) bool {
	if h.Typeflag != tar.TypeReg || h.Linkname != "" || h.Format&(tar.FormatUSTAR|tar.FormatPAX) == 0 {
		return false
	}
	for name := range h.PAXRecords {
		if strings.HasPrefix(name, "GNU.") {
			return false
		}
	}
	return true
}

// parse returns the entry with a header. The database comes first, and blobs in order.
func (r *Reader) parse(h *tar.Header) (Entry, error) {
	e := Entry{Size: h.Size}
	if !r.started {
		if h.Name != databaseName {
			return Entry{}, errors.New("the file is not a Stepmill backup")
		}
		return e, nil
	}
	name := h.Name[strings.LastIndexByte(h.Name, '/')+1:]
	if e.Blob = blob.ID(name); e.Blob.Check() != nil || e.name() != h.Name || e.Blob <= r.last {
		return Entry{}, damaged("the entry %q is unexpected", h.Name)
	}
	return e, nil
}

// Read reads the current entry.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.tar.Read(p)
	_, _ = r.sum.Write(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		err = classify(err)
	}
	return n, err
}

// checkEnd compares the checksum, after which nothing may follow.
func (r *Reader) checkEnd() error {
	want := r.sum.line()
	got, err := io.ReadAll(io.LimitReader(r.tar, int64(len(want))+1))
	if err != nil {
		return classify(err)
	}
	if !bytes.Equal(got, want) {
		return damaged("its checksum does not match its content")
	}
	if _, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		return damaged("there is data after its end")
	}
	return io.EOF
}

// classify distinguishes a damaged file from a failure to read it. The end of the file
// is only expected after the checksum.
func classify(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrHeader) || errors.Is(err, tar.ErrFieldTooLong) {
		return damaged("%v", err)
	}
	return err
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// Verify reads a backup to the end to check it.
func Verify(from io.Reader) error {
	r := NewReader(from)
	for {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
