package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/transport"
)

type files struct {
	files   *file.Service
	cursors *paging.Codec
	log     *slog.Logger
}

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

func (h *files) list(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, *in, []string{"files"},
		func(p paging.Request) (paging.Page[file.File], error) {
			return h.files.List(ctx, transport.Actor(ctx).Workspace.ID, p)
		}, showFile)
}

type getFileRequest struct {
	idRequest
	Accept string `header:"Accept"`
}

// get returns the bytes of a file or, to clients that ask for JSON, what is known
// about it.
func (h *files) get(ctx context.Context, in *getFileRequest) (*transport.Reply, error) {
	f, err := h.files.Get(ctx, transport.Actor(ctx).Workspace.ID, in.ID)
	if err != nil {
		return nil, err
	}
	if in.Accept == "application/json" {
		return transport.OK(showFile(f)).WithHeader("Vary", "Accept"), nil
	}
	return h.send(ctx, f), nil
}

func (h *files) remove(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.files.Delete(ctx, transport.Actor(ctx), in.ID)
}

type uploadFileRequest struct {
	Name        string                `query:"name"`
	Disposition string                `header:"Content-Disposition"`
	Body        *transport.BodyStream `body:"stream"`
}

// upload stores the body, or each file of a form.
func (h *files) upload(ctx context.Context, in *uploadFileRequest) (*transport.Reply, error) {
	media, params, err := mime.ParseMediaType(in.Body.Media)
	if err == nil && media == "multipart/form-data" {
		if in.Name != "" {
			return nil, transport.Parameter("name", "does not apply to a form: its parts have names")
		}
		return h.uploadForm(ctx, in.Body, params["boundary"])
	}
	if err := h.files.CheckSize(transport.Actor(ctx).Workspace.Plan, in.Body.Length); err != nil {
		return nil, err
	}
	name := in.Name
	if _, params, err := mime.ParseMediaType(in.Disposition); name == "" && err == nil {
		name = params["filename"]
	}
	f, err := h.receive(ctx, name, in.Body.Media, in.Body)
	if err != nil {
		return nil, err
	}
	recorded, err := h.files.Record(ctx, transport.Actor(ctx), f)
	if err != nil {
		return nil, err
	}
	return transport.OK(showFile(recorded[0])).WithHeader("Location", "/v1/files/"+recorded[0].ID), nil
}

func (h *files) receive(ctx context.Context, name, media string, from io.Reader) (file.File, error) {
	workspace := transport.Actor(ctx).Workspace
	w, err := h.files.Create(ctx, file.Owner{WorkspaceID: workspace.ID, Plan: workspace.Plan}, name, media)
	if err != nil {
		return file.File{}, err
	}
	defer w.Abort()
	if _, err := io.Copy(w, from); err != nil {
		return file.File{}, err
	}
	return w.Finish()
}

const maxFormFiles = 20

type fileList struct {
	Data []fileBody `json:"data"`
}

// uploadForm stores the files of a form, all or none of them.
func (h *files) uploadForm(ctx context.Context, body io.Reader, boundary string) (*transport.Reply, error) {
	var received []file.File
	err := eachFormFile(multipart.NewReader(body, boundary), func(p *multipart.Part) error {
		if len(received) == maxFormFiles {
			return fault.New(fault.InvalidRequest, "the form has more than %d files", maxFormFiles)
		}
		f, err := h.receive(ctx, p.FileName(), p.Header.Get("Content-Type"), p)
		if err == nil {
			received = append(received, f)
		}
		return err
	})
	if err == nil && len(received) == 0 {
		err = fault.New(fault.InvalidRequest, "the form has no file")
	}
	if err != nil {
		h.files.Discard(ctx, received...)
		return nil, err
	}
	recorded, err := h.files.Record(ctx, transport.Actor(ctx), received...)
	if err != nil {
		return nil, err
	}
	return transport.OK(fileList{showAll(recorded, showFile)}).WithHeader("Location", "/v1/files"), nil
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
			return fault.New(fault.InvalidRequest, "the part %q of the form is not a file: it has no filename", transport.Clean(part.FormName()))
		}
		if err := receive(part); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = fault.New(fault.InvalidRequest, "the form is incomplete").Because(err)
			}
			return err
		}
	}
}

// send sends the bytes of a file. Browsers never show them: a file may be a page
// with scripts.
func (h *files) send(ctx context.Context, f file.File) *transport.Reply {
	return &transport.Reply{Serve: func(call *transport.Call) {
		w, r := call.W, call.R
		release, err := h.files.AcquireDownload(ctx, f.WorkspaceID)
		if err != nil {
			call.Fail(err)
			return
		}
		defer release()
		content := &fileContent{ctx: ctx, files: h.files, file: f}
		defer content.close()
		// Several ranges at once are ignored, as RFC 9110 allows: http.ServeContent reads
		// them in a goroutine, which may still read when it has returned.
		if strings.Contains(r.Header.Get("Range"), ",") {
			r.Header.Del("Range")
		}
		// A storage that does not respond must be noticed before the response begins.
		if r.Method != http.MethodHead {
			if err := content.probe(r.Header.Get("Range") != ""); err != nil {
				call.Fail(err)
				return
			}
		}
		header := w.Header()
		header.Set("Content-Type", f.Type)
		header.Set("Vary", "Accept")
		header.Set("Content-Disposition", attachment(f.Name))
		header.Set("Content-Security-Policy", fileSecurityPolicy)
		header.Set("ETag", `"`+f.SHA256+`"`)
		out := &rangeWriter{ResponseWriter: transport.NewPatientWriter(w)}
		http.ServeContent(out, r, "", f.CreatedAt, content)
		if out.unsatisfiable {
			header.Del("Content-Disposition") // the error is not the file
			call.ResetHeaders()
			call.Fail(fault.New(fault.RangeNotSatisfiable, "the file has %d bytes, none of which are in the range", f.Size))
		}
		if content.err != nil && ctx.Err() == nil {
			h.log.Warn("a download ended early", "request_id", call.RequestID(), "error", content.err)
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
		if transport.Unprintable(r) || strings.ContainsRune(`"\%`, r) {
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
