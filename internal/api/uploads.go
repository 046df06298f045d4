package api

import (
	"context"
	"crypto/sha1" //nolint:gosec // the protocol requires it, for checksums
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/transport"
)

type uploads struct{ files *file.Service }

// Resumable uploads follow the protocol tus, https://tus.io/protocols/resumable-upload.
const (
	tusVersion    = "1.0.0"
	tusExtensions = "creation,creation-with-upload,expiration,termination,checksum"
	tusChecksums  = "sha1,sha256"
	tusMedia      = "application/offset+octet-stream"
	// maxMetadata limits the header with the name and the type of an upload.
	maxMetadata = 4 << 10
)

func setTusHeaders(h http.Header) {
	h.Set("Tus-Resumable", tusVersion)
	h.Set("Tus-Version", tusVersion)
}

type tusHeader struct {
	Version string `header:"Tus-Resumable"`
}

// check returns an error if the client uses another version of the protocol.
func (t tusHeader) check() error {
	if t.Version != tusVersion {
		return fault.New(fault.TusVersionUnsupported, "Tus-Resumable must be %s, not %q", tusVersion, transport.Clean(t.Version))
	}
	return nil
}

func (h *uploads) options(ctx context.Context, _ *struct{}) (*transport.Reply, error) {
	return (&transport.Reply{}).WithHeader("Tus-Extension", tusExtensions).WithHeader("Tus-Checksum-Algorithm", tusChecksums).
		WithHeader("Tus-Max-Size", strconv.FormatInt(h.files.MaxBytes(transport.Actor(ctx).Workspace.Plan), 10)), nil
}

type createUploadRequest struct {
	tusHeader
	Length   string                `header:"Upload-Length"`
	Metadata string                `header:"Upload-Metadata"`
	Checksum string                `header:"Upload-Checksum"`
	Body     *transport.BodyStream `body:"stream"`
}

func (h *uploads) create(ctx context.Context, in *createUploadRequest) (*transport.Reply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	size, err := parseSize("Upload-Length", in.Length)
	if err != nil {
		return nil, err
	}
	name, media, err := parseMetadata(in.Metadata)
	if err != nil {
		return nil, err
	}
	check, err := parseChecksum(in.Checksum)
	if err != nil {
		return nil, err
	}
	withBody := in.Body.Length != 0
	if withBody {
		if err := checkUploadBody(in.Body, 0, size); err != nil {
			return nil, err
		}
	}
	u, err := h.files.CreateUpload(ctx, transport.Actor(ctx), name, media, in.Metadata, size)
	if err != nil {
		return nil, err
	}
	if withBody && size > 0 {
		// The upload exists, so an error only means that less was received.
		if continued, err := h.files.Append(ctx, transport.Actor(ctx), u.ID, 0, in.Body, check); err == nil || continued.ID != "" {
			u = continued
		}
		in.Body.ExtendResponse()
	}
	return showUpload(u).WithHeader("Location", "/v1/files/uploads/"+u.ID), nil
}

func showUpload(u file.Upload) *transport.Reply {
	response := (&transport.Reply{}).WithHeader("Upload-Offset", strconv.FormatInt(u.Received, 10))
	if !u.ExpiresAt.IsZero() {
		response = response.WithHeader("Upload-Expires", u.ExpiresAt.Format(http.TimeFormat))
	}
	return response
}

type uploadRequest struct {
	tusHeader
	ID string `path:"id"`
}

type uploadBody struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Type      string  `json:"type"`
	Size      int64   `json:"size"`
	Received  int64   `json:"received"`
	CreatedAt string  `json:"created_at"`
	ExpiresAt *string `json:"expires_at"`
}

func (h *uploads) get(ctx context.Context, in *uploadRequest) (*transport.Reply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	u, err := h.files.Upload(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	response := showUpload(u).WithHeader("Upload-Length", strconv.FormatInt(u.Size, 10))
	if u.Metadata != "" {
		response = response.WithHeader("Upload-Metadata", u.Metadata)
	}
	body := uploadBody{ID: u.ID, Name: u.Name, Type: u.Type, Size: u.Size, Received: u.Received, CreatedAt: clock.Format(u.CreatedAt)}
	if !u.ExpiresAt.IsZero() {
		body.ExpiresAt = clock.FormatPtr(&u.ExpiresAt)
	}
	response.Body = body
	return response, nil
}

type appendUploadRequest struct {
	tusHeader
	ID       string                `path:"id"`
	Offset   string                `header:"Upload-Offset"`
	Checksum string                `header:"Upload-Checksum"`
	Body     *transport.BodyStream `body:"stream"`
}

func (h *uploads) add(ctx context.Context, in *appendUploadRequest) (*transport.Reply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	offset, err := parseSize("Upload-Offset", in.Offset)
	if err != nil {
		return nil, err
	}
	check, err := parseChecksum(in.Checksum)
	if err != nil {
		return nil, err
	}
	u, err := h.files.Upload(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	if err := checkUploadBody(in.Body, offset, u.Size); err != nil {
		return nil, err
	}
	u, err = h.files.Append(ctx, transport.Actor(ctx), in.ID, offset, in.Body, check)
	in.Body.ExtendResponse()
	if err != nil {
		return nil, err
	}
	return showUpload(u), nil
}

func (h *uploads) end(ctx context.Context, in *uploadRequest) (*transport.Reply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return &transport.Reply{}, h.files.EndUpload(ctx, transport.Actor(ctx), in.ID)
}

// checkUploadBody checks the media type of a body, and that it does not exceed the upload.
func checkUploadBody(b *transport.BodyStream, offset, size int64) error {
	if media, _, err := mime.ParseMediaType(b.Media); err != nil || media != tusMedia {
		return fault.New(fault.UnsupportedMediaType, "the body must be %s, not %q", tusMedia, transport.Clean(b.Media))
	}
	if b.Length > size-offset {
		return fault.New(fault.FileTooLarge, "the body has more bytes than the upload has left: it has announced %d bytes", size)
	}
	return nil
}

func parseSize(header, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, transport.Parameter(header, "must be a number of bytes")
	}
	return n, nil
}

// parseMetadata returns the name and the media type that clients send as filename and
// filetype.
func parseMetadata(text string) (name, media string, err error) {
	if len(text) > maxMetadata {
		return "", "", transport.Parameter("Upload-Metadata", "has more than %d bytes", maxMetadata)
	}
	if text == "" {
		return "", "", nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		key, encoded, _ := strings.Cut(strings.TrimSpace(pair), " ")
		value, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || key == "" {
			return "", "", transport.Parameter("Upload-Metadata", "must be pairs of a key and a value in base64, separated by commas")
		}
		switch key {
		case "filename", "name":
			name = string(value)
		case "filetype", "type":
			media = string(value)
		}
	}
	return name, media, nil
}

// parseChecksum returns what the bytes of a request must have, or nil.
func parseChecksum(text string) (*file.Checksum, error) {
	if text == "" {
		return nil, nil
	}
	algorithm, encoded, _ := strings.Cut(text, " ")
	sum, err := base64.StdEncoding.DecodeString(encoded)
	create := map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New}[algorithm]
	if err != nil || create == nil {
		return nil, transport.Parameter("Upload-Checksum", "must be one of the algorithms %s and a checksum in base64", tusChecksums)
	}
	return &file.Checksum{Hash: create(), Sum: sum}, nil
}
