package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
)

type fileBody struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Type      string  `json:"type"`
	Size      int64   `json:"size"`
	SHA256    string  `json:"sha256"`
	CreatedAt string  `json:"created_at"`
	ExpiresAt *string `json:"expires_at"`
}

func showFile(f file.File) fileBody {
	return fileBody{
		ID: f.ID, Name: f.Name, Type: f.Type, Size: f.Size, SHA256: f.SHA256,
		CreatedAt: clock.Format(f.CreatedAt), ExpiresAt: clock.FormatPtr(f.ExpiresAt),
	}
}

func (s *Server) listFiles(ctx context.Context, in *page) (*reply, error) {
	return paginate(ctx, s, *in, []string{"files"},
		func(p paging.Request) (paging.Page[file.File], error) {
			return s.Files.List(ctx, actorOf(ctx).Workspace.ID, p)
		}, showFile)
}

type fileRequest struct {
	ID string `path:"id"`
}

type getFileRequest struct {
	fileRequest
	Accept string `header:"Accept"`
}

// getFile returns the bytes of a file or, to clients that ask for JSON, what is known
// about it.
func (s *Server) getFile(ctx context.Context, in *getFileRequest) (*reply, error) {
	f, err := s.Files.Get(ctx, actorOf(ctx).Workspace.ID, in.ID)
	if err != nil {
		return nil, err
	}
	if in.Accept == "application/json" {
		return ok(showFile(f)).withHeader("Vary", "Accept"), nil
	}
	return s.sendFile(ctx, f), nil
}

func (s *Server) deleteFile(ctx context.Context, in *fileRequest) (*reply, error) {
	return &reply{}, s.Files.Delete(ctx, actorOf(ctx), in.ID)
}

type uploadFileRequest struct {
	Name        string      `query:"name"`
	Disposition string      `header:"Content-Disposition"`
	Body        *bodyStream `body:"stream"`
}

// uploadFile stores the body, or each file of a form.
func (s *Server) uploadFile(ctx context.Context, in *uploadFileRequest) (*reply, error) {
	media, params, err := mime.ParseMediaType(in.Body.media)
	if err == nil && media == "multipart/form-data" {
		if in.Name != "" {
			return nil, parameter("name", "does not apply to a form: its parts have names")
		}
		return s.uploadForm(ctx, in.Body, params["boundary"])
	}
	if err := s.Files.CheckSize(actorOf(ctx).Workspace.Plan, in.Body.length); err != nil {
		return nil, err
	}
	name := in.Name
	if _, params, err := mime.ParseMediaType(in.Disposition); name == "" && err == nil {
		name = params["filename"]
	}
	f, err := s.receive(ctx, name, in.Body.media, in.Body)
	if err != nil {
		return nil, err
	}
	recorded, err := s.Files.Record(ctx, actorOf(ctx), f)
	if err != nil {
		return nil, err
	}
	return ok(showFile(recorded[0])).withHeader("Location", "/v1/files/"+recorded[0].ID), nil
}

// receive stores the bytes of a file.
func (s *Server) receive(ctx context.Context, name, media string, from io.Reader) (file.File, error) {
	workspace := actorOf(ctx).Workspace
	w, err := s.Files.Create(ctx, file.Owner{WorkspaceID: workspace.ID, Plan: workspace.Plan}, name, media)
	if err != nil {
		return file.File{}, err
	}
	defer w.Abort()
	if _, err := io.Copy(w, from); err != nil {
		return file.File{}, err
	}
	return w.Finish()
}

// maxFormFiles is how many files a form may have.
const maxFormFiles = 20

type fileList struct {
	Data []fileBody `json:"data"`
}

// uploadForm stores the files of a form, all or none of them.
func (s *Server) uploadForm(ctx context.Context, body io.Reader, boundary string) (*reply, error) {
	var received []file.File
	err := eachFormFile(multipart.NewReader(body, boundary), func(p *multipart.Part) error {
		if len(received) == maxFormFiles {
			return fault.New(fault.InvalidRequest, "the form has more than %d files", maxFormFiles)
		}
		f, err := s.receive(ctx, p.FileName(), p.Header.Get("Content-Type"), p)
		if err == nil {
			received = append(received, f)
		}
		return err
	})
	if err == nil && len(received) == 0 {
		err = fault.New(fault.InvalidRequest, "the form has no file")
	}
	if err != nil {
		s.Files.Discard(ctx, received...)
		return nil, err
	}
	recorded, err := s.Files.Record(ctx, actorOf(ctx), received...)
	if err != nil {
		return nil, err
	}
	return ok(fileList{showAll(recorded, showFile)}).withHeader("Location", "/v1/files"), nil
}

func eachFormFile(form *multipart.Reader, receive func(*multipart.Part) error) error {
	for {
		part, err := form.NextRawPart()
		switch _, known := fault.As(err); {
		case errors.Is(err, io.EOF):
			return nil
		case known:
			return err
		case err != nil:
			return fault.New(fault.InvalidRequest, "the form is malformed or incomplete").Because(err)
		case part.FileName() == "":
			return fault.New(fault.InvalidRequest, "the part %q of the form is not a file: it has no filename", clean(part.FormName()))
		}
		if err := receive(part); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = fault.New(fault.InvalidRequest, "the form is incomplete").Because(err)
			}
			return err
		}
	}
}

// sendFile sends the bytes of a file. Browsers never show them: a file may be a page
// with scripts.
func (s *Server) sendFile(ctx context.Context, f file.File) *reply {
	return &reply{serve: func(w http.ResponseWriter, r *http.Request) {
		c := callerOf(ctx)
		release, err := s.Files.AcquireDownload(ctx, f.WorkspaceID)
		if err != nil {
			s.fail(w, c, err)
			return
		}
		defer release()
		content := &fileContent{ctx: ctx, files: s.Files, file: f}
		defer content.close()
		// Several ranges at once are ignored, as RFC 9110 allows: http.ServeContent reads
		// them in a goroutine, which may still read when it has returned.
		if strings.Contains(r.Header.Get("Range"), ",") {
			r.Header.Del("Range")
		}
		// A storage that does not respond must be noticed before the response begins.
		if r.Method != http.MethodHead {
			if err := content.probe(r.Header.Get("Range") != ""); err != nil {
				s.fail(w, c, err)
				return
			}
		}
		h := w.Header()
		h.Set("Content-Type", f.Type)
		h.Set("Vary", "Accept")
		h.Set("Content-Disposition", attachment(f.Name))
		h.Set("Content-Security-Policy", fileSecurityPolicy)
		h.Set("ETag", `"`+f.SHA256+`"`)
		out := &rangeWriter{ResponseWriter: newPatientWriter(w)}
		http.ServeContent(out, r, "", f.CreatedAt, content)
		if out.unsatisfiable {
			h.Del("Content-Disposition") // the error is not the file
			s.setCommonHeaders(h, c)
			s.fail(w, c, fault.New(fault.RangeNotSatisfiable, "the file has %d bytes, none of which are in the range", f.Size))
		}
		if content.err != nil && ctx.Err() == nil {
			s.Log.Warn("a download ended early", "request_id", c.requestID, "error", content.err)
		}
	}}
}

const fileSecurityPolicy = "sandbox; default-src 'none'; frame-ancestors 'none'"

// rangeWriter holds back the response to a range outside of the file, which is not JSON.
type rangeWriter struct {
	http.ResponseWriter
	unsatisfiable bool
}

// WriteHeader implements http.ResponseWriter.
func (w *rangeWriter) WriteHeader(status int) {
	if w.unsatisfiable = status == http.StatusRequestedRangeNotSatisfiable; !w.unsatisfiable {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (w *rangeWriter) Write(p []byte) (int, error) {
	if w.unsatisfiable {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// attachment returns the disposition of a download, with a name that old clients
// understand and, if it differs, the exact one (RFC 6266).
func attachment(name string) string {
	ascii := strings.Map(func(r rune) rune {
		if unprintable(r) || strings.ContainsRune(`"\%`, r) {
			return '_'
		}
		return r
	}, name)
	disposition := `attachment; filename="` + ascii + `"`
	if ascii != name {
		disposition += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	}
	return disposition
}

// fileContent is a file as http.ServeContent reads it.
type fileContent struct {
	ctx    context.Context
	files  *file.Service
	file   file.File
	reader io.ReadCloser // nil: not open
	at     int64         // where the reader is
	offset int64         // of the next read
	err    error         // of a read
}

// probe opens the file, or only its start if a part is asked for.
func (c *fileContent) probe(part bool) error {
	length := c.file.Size
	if part {
		length = 0
	}
	reader, err := c.files.OpenFile(c.ctx, c.file, 0, length)
	if err != nil {
		return err
	}
	if part {
		return reader.Close()
	}
	c.reader = reader
	return nil
}

// Seek implements io.Seeker.
func (c *fileContent) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.offset
	case io.SeekEnd:
		offset += c.file.Size
	}
	if offset < 0 || offset > c.file.Size {
		return 0, errors.New("seek outside of the file")
	}
	c.offset = offset
	return offset, nil
}

// Read implements io.Reader.
func (c *fileContent) Read(p []byte) (n int, err error) {
	if c.reader == nil || c.at != c.offset {
		c.close()
		if c.reader, err = c.files.OpenFile(c.ctx, c.file, c.offset, c.file.Size-c.offset); err != nil {
			c.err = err
			return 0, err
		}
	}
	n, err = c.reader.Read(p)
	c.offset += int64(n)
	c.at = c.offset
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

func (c *fileContent) close() {
	if c.reader != nil {
		_ = c.reader.Close()
		c.reader = nil
	}
}
