package httprequest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// part is one part of a multipart body: a field, or a file.
type part struct {
	name      string
	value     []byte
	file      *expr.File
	filename  string
	mediaType string
}

// parseParts returns the parts of the input multipart. Fields come before files, because
// some services ignore what follows a file; apart from that the order is that of the
// names, and within a list that of the list.
func parseParts(given map[string]any) ([]part, error) {
	var fields, files []part
	for _, name := range slices.Sorted(maps.Keys(given)) {
		items, ok := given[name].([]any)
		if !ok {
			items = []any{given[name]}
		}
		for _, item := range items {
			if item == nil {
				continue
			}
			p, err := parsePart(name, item)
			if err != nil {
				return nil, fmt.Errorf("multipart/%s: %w", name, err)
			}
			if p.file != nil {
				files = append(files, p)
			} else {
				fields = append(fields, p)
			}
		}
	}
	return append(fields, files...), nil
}

func parsePart(name string, item any) (part, error) {
	p := part{name: name}
	switch item := item.(type) {
	case *expr.File:
		p.file = item
	case map[string]any:
		err := p.describe(item)
		return p, err
	default:
		text, err := formatScalar(item)
		if err != nil {
			return p, errPart
		}
		p.value = []byte(text)
	}
	return p, nil
}

var errPart = errors.New("must be a string, a number, a boolean, a file, or an object with value or file, and with filename or type")

// describe reads a part that is given as an object.
func (p *part) describe(given map[string]any) error {
	for member, value := range given {
		var ok bool
		switch member {
		case "file":
			p.file, ok = value.(*expr.File)
		case "filename":
			p.filename, ok = value.(string)
		case "type":
			p.mediaType, ok = value.(string)
			ok = ok && !strings.ContainsFunc(p.mediaType, unicode.IsControl)
		case "value":
			ok = true
		}
		if !ok {
			return errPart
		}
	}
	value, hasValue := given["value"]
	if hasValue == (p.file != nil) {
		return errPart
	}
	if !hasValue {
		return nil
	}
	if text, err := formatScalar(value); err == nil {
		p.value = []byte(text)
		return nil
	}
	p.mediaType = cmp.Or(p.mediaType, "application/json")
	var err error
	p.value, err = strictjson.Encode(value)
	return err
}

// header returns the header of the part.
func (p part) header() textproto.MIMEHeader {
	header := textproto.MIMEHeader{}
	filename, mediaType := p.filename, p.mediaType
	if p.file != nil {
		filename, mediaType = cmp.Or(filename, p.file.Name), cmp.Or(mediaType, p.file.Type)
	}
	header.Set("Content-Disposition", strings.TrimSuffix(multipart.FileContentDisposition(p.name, filename), `; filename=""`))
	if mediaType != "" {
		header.Set("Content-Type", mediaType)
	}
	return header
}

// segment is a section of a body: bytes, or a file.
type segment struct {
	data []byte
	file *expr.File
}

// streamedBody is a body with files in it. It is opened as often as it is sent.
type streamedBody []segment

// newMultipart returns a multipart body and its type.
func newMultipart(parts []part) (body streamedBody, mediaType string, err error) {
	var buffer bytes.Buffer
	w := multipart.NewWriter(&buffer)
	for _, p := range parts {
		out, err := w.CreatePart(p.header())
		if err != nil {
			return nil, "", err
		}
		if p.file == nil {
			_, _ = out.Write(p.value) // to the buffer
			continue
		}
		body = append(body, segment{data: bytes.Clone(buffer.Bytes())}, segment{file: p.file})
		buffer.Reset()
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return append(body, segment{data: buffer.Bytes()}), w.FormDataContentType(), nil
}

func (b streamedBody) length() int64 {
	var length int64
	for _, s := range b {
		if length += int64(len(s.data)); s.file != nil {
			length += s.file.Size
		}
	}
	return length
}

// attach makes it the body of a request.
func (b streamedBody) attach(ctx context.Context, files action.Files, call *egress.Request) {
	if call.UploadLength = b.length(); call.UploadLength == 0 {
		return // an empty file is an empty body
	}
	call.Upload = func() (io.ReadCloser, error) { return &segmentReader{ctx: ctx, files: files, rest: b}, nil }
}

// segmentReader reads the segments one after the other. It opens each file when its turn
// has come.
type segmentReader struct {
	ctx   context.Context
	files action.Files
	rest  []segment
	bytes *bytes.Reader

	mu     sync.Mutex
	closed bool
	file   io.ReadCloser
}

// Read implements io.Reader.
func (r *segmentReader) Read(p []byte) (int, error) {
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
func (r *segmentReader) current() (io.Reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, io.ErrClosedPipe
	case r.file != nil:
		return r.file, nil
	case r.bytes != nil:
		return r.bytes, nil
	case len(r.rest) == 0:
		return nil, nil
	}
	if f := r.rest[0].file; f != nil {
		var err error
		r.file, err = r.files.Open(r.ctx, f, 0)
		return r.file, err
	}
	r.bytes = bytes.NewReader(r.rest[0].data)
	return r.bytes, nil
}

// next moves to the next segment.
func (r *segmentReader) next() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.file != nil {
		err = r.file.Close()
	}
	r.file, r.bytes, r.rest = nil, nil, r.rest[min(1, len(r.rest)):]
	return err
}

// Close implements io.Closer. It ends a read in progress.
func (r *segmentReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed = true; r.file != nil {
		return r.file.Close()
	}
	return nil
}
