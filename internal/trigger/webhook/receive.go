package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/trigger"
)

// Files stores the files that calls bring and reads those of responses.
type Files interface {
	Create(ctx context.Context, o file.Owner, name, mediaType string) (*file.Writer, error)
	Discard(ctx context.Context, files ...file.File)
	// Open reads at most length bytes of a file from an offset on.
	Open(ctx context.Context, workspaceID, id string, offset, length int64) (io.ReadCloser, error)
}

// Open reads the file of a response.
func (h *Hooks) Open(ctx context.Context, hook Hook, f *expr.File) (io.ReadCloser, error) {
	return h.files.Open(ctx, hook.WorkspaceID, f.ID, 0, f.Size)
}

// Upload is the payload of a call whose body has files. They are stored, but not yet
// recorded.
type Upload struct {
	Payload  json.RawMessage
	Pointers []string // the JSON pointers of the references inside Payload
	Files    []file.File
	Size     int64 // of the body
}

const (
	// StreamBytes is the memory that receiving a body with files takes, apart from the
	// fields of a form.
	StreamBytes = 256 << 10
	// maxEpilogue limits what follows the last part of a form.
	maxEpilogue = 64 << 10
	// fileMember is the member of the payload that refers to a body that is a file.
	fileMember = "file"
)

// BringsFiles reports whether the body of a call has files, and is therefore received as
// it arrives: a form with files, or anything that is neither text nor JSON.
func BringsFiles(header http.Header) bool { return trigger.BringsFiles(header.Get("Content-Type")) }

// Receive stores the files in the body of a call. Grow is called before the fields of a
// form take more memory. The caller discards the upload, or passes it on.
func (h *Hooks) Receive(ctx context.Context, hook Hook, header http.Header, body io.Reader, grow func(bytes int64) error) (*Upload, error) {
	if err := trigger.CheckEncoding(header); err != nil {
		return nil, err
	}
	media, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return nil, fault.New(fault.UnsupportedMediaType, "the Content-Type header of the body is invalid")
	}
	counted := &countingReader{from: body}
	r := receiver{
		files: h.files, owner: file.Owner{WorkspaceID: hook.WorkspaceID, Plan: hook.Workspace.Plan},
		payload: map[string]any{}, grow: grow, left: int64(hook.Workspace.Plan.Limits().PayloadBytes),
	}
	if media == "multipart/form-data" {
		err = r.readForm(ctx, counted, params["boundary"])
	} else {
		err = r.readFile(ctx, counted, header)
	}
	upload := &Upload{Files: r.created, Size: counted.n}
	if err == nil {
		upload.Pointers = expr.FilePointers(r.payload)
		upload.Payload, err = strictjson.Encode(r.payload)
	}
	if err != nil {
		h.Discard(ctx, upload)
		return nil, err
	}
	return upload, nil
}

// Discard deletes the files of an upload that starts no run.
func (h *Hooks) Discard(ctx context.Context, u *Upload) {
	if u != nil && len(u.Files) > 0 {
		h.files.Discard(ctx, u.Files...)
		u.Files = nil
	}
}

// receiver turns a body into a payload with references to files.
type receiver struct {
	files   Files
	owner   file.Owner
	payload map[string]any
	created []file.File
	grow    func(bytes int64) error
	held    int64 // by fields
	left    int64 // that fields may have
}

// readFile stores a whole body as a file. An empty body is no file.
func (r *receiver) readFile(ctx context.Context, body io.Reader, header http.Header) error {
	var first [1]byte
	if n, err := io.ReadFull(body, first[:]); n == 0 {
		return bodyError(err)
	}
	_, params, _ := mime.ParseMediaType(header.Get("Content-Disposition"))
	f, err := r.store(ctx, io.MultiReader(bytes.NewReader(first[:]), body), params["filename"], header.Get("Content-Type"))
	if err == nil {
		r.payload[fileMember] = f.Value()
	}
	return err
}

func (r *receiver) readForm(ctx context.Context, body io.Reader, boundary string) error {
	malformed := fault.New(fault.InvalidRequest, "the body is not a valid multipart form")
	if boundary == "" {
		return malformed
	}
	// The reader does not notice a form that is truncated inside a header.
	end := &sequenceFinder{sequence: []byte("--" + boundary + "--")}
	body = io.TeeReader(body, end)
	form := multipart.NewReader(body, boundary)
	for n := 0; ; n++ {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || part.FormName() == "" {
			return clientError(err, malformed)
		}
		if n >= trigger.MaxFields {
			return trigger.ErrTooManyFields()
		}
		if err := r.readPart(ctx, part); err != nil {
			return err
		}
	}
	rest, err := io.Copy(io.Discard, io.LimitReader(body, maxEpilogue+1))
	switch {
	case err != nil:
		return bodyError(err)
	case !end.found || rest > maxEpilogue:
		return malformed
	}
	return nil
}

// clientError returns the error if a client may see it, otherwise the other one.
func clientError(err, otherwise error) error {
	if _, ok := fault.As(err); ok {
		return err
	}
	return otherwise
}

// bodyError returns the error of a body that could not be read, or nil at its end.
func bodyError(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return clientError(err, fault.New(fault.InvalidRequest, "the body could not be read completely"))
}

func (r *receiver) readPart(ctx context.Context, part *multipart.Part) error {
	name := part.FormName()
	if part.FileName() == "" {
		value, err := r.readField(part)
		if err == nil {
			trigger.AddField(r.payload, name, strings.ToValidUTF8(value, "\uFFFD"))
		}
		return err
	}
	f, err := r.store(ctx, part, part.FileName(), part.Header.Get("Content-Type"))
	if err == nil {
		trigger.AddField(r.payload, name, f.Value())
	}
	return err
}

// readField reads a field of a form into memory.
func (r *receiver) readField(part io.Reader) (string, error) {
	var value bytes.Buffer
	buffer := make([]byte, 4<<10)
	for {
		n, err := part.Read(buffer)
		if r.left -= int64(n); r.left < 0 {
			return "", fault.New(fault.PayloadTooLarge, "the fields of the form are larger than the payload that the plan allows")
		}
		if r.held += int64(2 * n); n > 0 {
			if err := r.grow(StreamBytes + r.held); err != nil {
				return "", err
			}
			value.Write(buffer[:n])
		}
		if err != nil {
			return value.String(), bodyError(err)
		}
	}
}

func (r *receiver) store(ctx context.Context, from io.Reader, name, mediaType string) (file.File, error) {
	w, err := r.files.Create(ctx, r.owner, name, mediaType)
	if err != nil {
		return file.File{}, err
	}
	defer w.Abort()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return file.File{}, err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return file.File{}, bodyError(err)
		}
	}
	f, err := w.Finish()
	if err == nil {
		r.created = append(r.created, f)
	}
	return f, err
}

// sequenceFinder reports whether a sequence was written to it.
type sequenceFinder struct {
	sequence []byte
	tail     []byte
	found    bool
}

func (s *sequenceFinder) Write(p []byte) (int, error) {
	if !s.found {
		s.tail = append(s.tail, p...)
		s.found = bytes.Contains(s.tail, s.sequence)
		s.tail = append(s.tail[:0], s.tail[max(0, len(s.tail)-len(s.sequence)):]...)
	}
	return len(p), nil
}

type countingReader struct {
	from io.Reader
	n    int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}
