package transfer

import (
	"encoding/base64"
	"io"
)

// lineLength is the longest line of base64 that RFC 2045 allows, and lineBytes how many bytes it
// has.
const (
	lineLength = 76
	lineBytes  = lineLength / 4 * 3
)

// base64Reader encodes what it reads in the standard encoding with padding.
type base64Reader struct {
	from    io.Reader
	lines   bool // break the text into lines
	raw     [24 << 10]byte
	pending int    // bytes at the beginning of raw that are not encoded yet
	encoded []byte // not returned yet
	buffer  []byte // of encoded
	err     error  // of from, after encoded
}

// Read implements io.Reader.
func (r *base64Reader) Read(p []byte) (int, error) {
	for len(r.encoded) == 0 && r.err == nil {
		r.fill()
	}
	n := copy(p, r.encoded)
	r.encoded = r.encoded[n:]
	if len(r.encoded) > 0 {
		return n, nil
	}
	return n, r.err
}

// fill encodes what the next read returns, in groups of three bytes or those of a line.
// Fewer are encoded only at the end.
func (r *base64Reader) fill() {
	n, err := r.from.Read(r.raw[r.pending:])
	filled, group := r.pending+n, 3
	if r.lines {
		group = lineBytes
	}
	whole := filled - filled%group
	if err == io.EOF { // a wrapped EOF is not the end of the file
		whole = filled
	}
	r.buffer = r.buffer[:0]
	if !r.lines {
		group = whole
	}
	for at := 0; at < whole; at += group {
		r.buffer = base64.StdEncoding.AppendEncode(r.buffer, r.raw[at:min(at+group, whole)])
		if r.lines {
			r.buffer = append(r.buffer, "\r\n"...)
		}
	}
	r.encoded, r.err = r.buffer, err
	r.pending = copy(r.raw[:], r.raw[whole:filled])
}
