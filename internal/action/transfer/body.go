package transfer

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"sync"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
)

// Segment is a section of a body: bytes, a file or a range of one, or another body.
type Segment struct {
	Data []byte
	File *expr.File
	// Offset and Length select a range of the file, which ends with the file if that is
	// shorter. If Length is zero, the range ends with the file.
	Offset, Length int64
	Body           Body
	// Encoding is how the segment is encoded while it is sent.
	Encoding Encoding
}

// Encoding is an encoding of bytes as text.
type Encoding int

// The encodings. Base64Lines breaks base64 into lines of 76 characters, as in e-mail.
const (
	Unencoded Encoding = iota
	Base64
	Base64Lines
)

// length returns how many bytes of a body the segment is.
func (s Segment) length() int64 {
	length := int64(len(s.Data)) + s.Body.Length()
	if s.File != nil {
		length = max(0, s.File.Size-s.Offset)
		if s.Length > 0 {
			length = min(length, s.Length)
		}
	}
	if s.Encoding == Unencoded {
		return length
	}
	length = (length + 2) / 3 * 4
	if s.Encoding == Base64Lines {
		length += (length + lineLength - 1) / lineLength * int64(len("\r\n"))
	}
	return length
}

// open returns a reader of the segment, and what has to be closed after it, if anything.
func (s Segment) open(ctx context.Context, files action.Files) (from io.Reader, closer io.Closer, err error) {
	switch {
	case s.File != nil:
		f, err := files.Open(ctx, s.File, s.Offset)
		if err != nil {
			return nil, nil, err
		}
		from, closer = f, f
		if s.Length > 0 {
			from = io.LimitReader(f, s.Length)
		}
	case s.Body != nil:
		b := s.Body.open(ctx, files)
		from, closer = b, b
	default:
		from = bytes.NewReader(s.Data)
	}
	if s.Encoding != Unencoded {
		from = &base64Reader{from: from, lines: s.Encoding == Base64Lines}
	}
	return from, closer, nil
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
	call.Upload = func() (io.ReadCloser, error) { return b.open(ctx, files), nil }
}

func (b Body) open(ctx context.Context, files action.Files) *bodyReader {
	return &bodyReader{ctx: ctx, files: files, rest: b}
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
	close  io.Closer // closes what from reads; nil if nothing has to be closed
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
	r.from, r.close, err = r.rest[0].open(r.ctx, r.files)
	return r.from, err
}

func (r *bodyReader) next() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.close != nil {
		err = r.close.Close()
	}
	r.from, r.close, r.rest = nil, nil, r.rest[min(1, len(r.rest)):]
	return err
}

// Close implements io.Closer. It ends a read in progress.
func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed = true; r.close != nil {
		return r.close.Close()
	}
	return nil
}
