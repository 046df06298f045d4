package transfer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"io"
	"sync"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
)

// Segment is a section of a body: bytes, or a file or a range of one.
type Segment struct {
	Data []byte
	File *expr.File
	// Offset and Length select a range of the file, which ends with the file if that is
	// shorter. If Length is zero, the range ends with the file.
	Offset, Length int64
	// Base64 encodes the segment while it is sent, in the standard encoding with padding.
	Base64 bool
}

// length returns how many bytes of a body the segment is.
func (s Segment) length() int64 {
	length := int64(len(s.Data))
	if s.File != nil {
		length = max(0, s.File.Size-s.Offset)
		if s.Length > 0 {
			length = min(length, s.Length)
		}
	}
	if s.Base64 {
		length = (length + 2) / 3 * 4
	}
	return length
}

// open returns a reader of the segment, and the open file if it is one of a file.
func (s Segment) open(ctx context.Context, files action.Files) (from io.Reader, file io.Closer, err error) {
	from = bytes.NewReader(s.Data)
	if s.File != nil {
		f, err := files.Open(ctx, s.File, s.Offset)
		if err != nil {
			return nil, nil, err
		}
		from, file = f, f
		if s.Length > 0 {
			from = io.LimitReader(f, s.Length)
		}
	}
	if s.Base64 {
		from = &base64Reader{from: from}
	}
	return from, file, nil
}

// Body is a body with files in it. It is opened as often as it is sent, and the files
// are streamed.
type Body []Segment

// Length returns how many bytes the body has.
func (b Body) Length() int64 {
	var length int64
	for _, s := range b {
		length += s.length()
	}
	return length
}

// Attach makes it the body of a request.
func (b Body) Attach(ctx context.Context, files action.Files, call *egress.Request) {
	if call.UploadLength = b.Length(); call.UploadLength == 0 {
		return // an empty file is an empty body
	}
	call.Upload = func() (io.ReadCloser, error) { return &bodyReader{ctx: ctx, files: files, rest: b}, nil }
}

// bodyReader reads the segments of a body one after the other. It opens each file when
// its turn has come.
type bodyReader struct {
	ctx   context.Context
	files action.Files
	rest  []Segment

	mu     sync.Mutex
	closed bool
	from   io.Reader // of the first segment of rest, nil if it has not been opened
	file   io.Closer // the file that from reads, if it reads one
}

// Read implements io.Reader.
func (r *bodyReader) Read(p []byte) (int, error) {
	for {
		from, err := r.current()
		if from == nil || err != nil {
			return 0, cmp.Or(err, io.EOF)
		}
		n, err := from.Read(p)
		if err != io.EOF { //nolint:errorlint // a wrapped EOF is not the end of the segment
			return n, err
		}
		if err := r.next(); err != nil || n > 0 {
			return n, err
		}
	}
}

// current returns the reader of the current segment, nil after the last one.
func (r *bodyReader) current() (io.Reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, io.ErrClosedPipe
	case r.from != nil || len(r.rest) == 0:
		return r.from, nil
	}
	var err error
	r.from, r.file, err = r.rest[0].open(r.ctx, r.files)
	return r.from, err
}

// next moves to the next segment.
func (r *bodyReader) next() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.file != nil {
		err = r.file.Close()
	}
	r.from, r.file, r.rest = nil, nil, r.rest[min(1, len(r.rest)):]
	return err
}

// Close implements io.Closer. It ends a read in progress.
func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed = true; r.file != nil {
		return r.file.Close()
	}
	return nil
}

// base64Reader encodes what it reads.
type base64Reader struct {
	from    io.Reader
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

// fill encodes what the next read returns, in groups of three bytes. Fewer are encoded
// only at the end.
func (r *base64Reader) fill() {
	n, err := r.from.Read(r.raw[r.pending:])
	filled := r.pending + n
	whole := filled - filled%3
	if err == io.EOF { // a wrapped EOF is not the end of the file
		whole = filled
	}
	r.buffer = base64.StdEncoding.AppendEncode(r.buffer[:0], r.raw[:whole])
	r.encoded, r.err = r.buffer, err
	r.pending = copy(r.raw[:], r.raw[whole:filled])
}
