package blob

import (
	"errors"
	"fmt"
	"io"
)

// sealedReader reads a range of the plain bytes of a blob, segment by segment.
type sealedReader struct {
	source  io.ReadCloser
	cipher  *segmentCipher
	segment []byte
	plain   []byte // verified and not yet read
	size    int64  // of the plain bytes of the blob
	rest    int64  // plain bytes to read that are not in plain yet
	skip    int    // plain bytes to skip in the next segment
	next    int64  // number of the next segment
	last    int64  // number of the last segment of the range
	err     error
}

// newSealedReader returns a reader of a range that lies within a blob. Its source
// and cipher are missing.
func newSealedReader(size, offset, length int64) *sealedReader {
	r := &sealedReader{
		size: size, rest: length, skip: int(offset % segmentSize),
		next: offset / segmentSize, last: max(0, offset+length-1) / segmentSize,
		segment: make([]byte, min(segmentSize, size)+tagSize),
	}
	if r.next > r.last {
		// The range is empty and begins where a segment ends. There may be no next one.
		r.next, r.skip = r.last, segmentSize
	}
	return r
}

// sealedRange returns where the sealed bytes that the reader needs begin and end. It
// includes the header if it includes the first segment. After the last segment it
// includes another byte, to notice if there is one.
func (r *sealedReader) sealedRange() (start, end int64) {
	if r.next > 0 {
		start = sealedOffset(r.next)
	}
	if r.last == lastSegment(r.size) {
		return start, SealedSize(r.size) + 1
	}
	return start, sealedOffset(r.last + 1)
}

// Read implements io.Reader.
func (r *sealedReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.plain) == 0 && r.err == nil {
		if r.next > r.last {
			r.err = io.EOF
		} else {
			r.err = r.readSegment()
		}
	}
	if len(r.plain) == 0 {
		return 0, r.err
	}
	n := copy(p, r.plain)
	r.plain = r.plain[n:]
	return n, nil
}

// readSegment reads and verifies the next segment.
func (r *sealedReader) readSegment() error {
	last := r.next == lastSegment(r.size)
	sealed := r.segment[:min(segmentSize, r.size-r.next*segmentSize)+tagSize]
	if err := readExactly(r.source, sealed); err != nil {
		return err
	}
	if last {
		if err := r.expectEnd(); err != nil {
			return err
		}
	}
	plain, err := r.cipher.open(sealed, r.next, last)
	if err != nil {
		return err
	}
	plain = plain[r.skip:]
	r.plain = plain[:min(int64(len(plain)), r.rest)]
	r.rest -= int64(len(r.plain))
	r.skip = 0
	r.next++
	return nil
}

// expectEnd checks that nothing follows the last segment.
func (r *sealedReader) expectEnd() error {
	var more [1]byte
	switch n, err := io.ReadFull(r.source, more[:]); {
	case n > 0:
		return fmt.Errorf("%w: bytes follow its end", ErrCorrupt)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// Close implements io.Closer.
func (r *sealedReader) Close() error { return r.source.Close() }
